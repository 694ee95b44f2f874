package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

var loadFor = flag.Duration("browser.load", time.Minute, "how long a page is under load in the long run")

// What a page may cost; times are measured, and asserted nowhere.
const (
	updateRate = 200      // a second
	frameRate  = 4        // a second
	byteRate   = 40 << 10 // a second
	layoutMove = 0.02
)

// long ends a test that was not asked for.
func long(t *testing.T) {
	t.Helper()
	if !*all {
		t.Skip("it takes long: make browser runs it")
	}
}

// idle lets a time pass that a measurement takes.
func idle(t *testing.T, d time.Duration) {
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// feed sends so many events in a second to a hub, each by itself, until the test ends, and counts them.
func feed(t *testing.T, to *hub.Hub, rate int) (sent *atomic.Int64) {
	t.Helper()
	sent = new(atomic.Int64)
	testkit.Run(t, func(ctx context.Context) error {
		clock := time.NewTicker(time.Second / time.Duration(rate))
		defer clock.Stop()
		for {
			select {
			case <-clock.C:
			case <-ctx.Done():
				return nil
			}
			n := sent.Add(1)
			err := to.Send(ctx, event.Event{Key: fmt.Sprint("home-", n%97), Body: fmt.Appendf(nil, `{"home":%d,"motion":%d}`, n%97, n)})
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	})
	return sent
}

// received is what the stream of a page has brought.
type received struct {
	bytes atomic.Int64

	mu    sync.Mutex
	kinds map[string]int64 // how many of each kind of event, and part; guarded by mu
}

func (p *page) receive() *received {
	r := &received{kinds: map[string]int64{}}
	chromedp.ListenTarget(p.ctx, func(heard any) {
		if e, ok := heard.(*network.EventEventSourceMessageReceived); ok {
			r.take(e.EventName, e.Data)
		}
	})
	return r
}

func (r *received) take(kind, data string) {
	r.bytes.Add(int64(len(data)))
	var part struct {
		ID   any
		More bool
	}
	if kind == "part" && json.Unmarshal([]byte(data), &part) == nil && part.More {
		return // its last piece counts
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[fmt.Sprint(kind, part.ID)]++
}

// frames is how many have come: of each kind a frame of a short page has one at most.
func (r *received) frames() (most int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.kinds {
		most = max(most, n)
	}
	return most
}

// observers have the page take down tasks of more than 50 ms, and what moves without being asked to.
const observers = `window.seen = {Began: performance.now(), Tasks: [], Moved: 0};
new PerformanceObserver(l => { for (const e of l.getEntries()) seen.Tasks.push(e.duration); }).observe({type: "longtask"});
new PerformanceObserver(l => { for (const e of l.getEntries()) if (!e.hadRecentInput) seen.Moved += e.value; }).observe({type: "layout-shift"});
0`

// seen is what they have seen.
type seen struct {
	Lasted float64 // milliseconds
	Tasks  []float64
	Moved  float64
}

// script is for how many seconds the page has run scripts.
func (p *page) script() (seconds float64) {
	p.t.Helper()
	p.run("measure the script", chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if m.Name == "ScriptDuration" {
				seconds = m.Value
			}
		}
		return err
	}))
	return seconds
}

// shortLoad is how long a page is under load in the short run.
const shortLoad = 5 * time.Second

// V4: the same in short, as fast as the machine is: few frames and bytes, and nothing jumps.
func TestSomeUpdatesASecond(t *testing.T) {
	y := newYard(t)
	y.worker(t, "one")
	sent := feed(t, y.Dial(t).Hub("orders"), updateRate)
	for _, path := range []string{"", "hubs/orders", "hubs/orders/events", "hubs/orders/groups/billing"} {
		t.Run("/"+path, func(t *testing.T) { y.load(t, path, 1, shortLoad, sent) })
	}
}

// V4: two hundred updates a second are few frames and bytes for a page, and nothing of it jumps. How long
// tasks take is said, on this machine and on one that has a quarter of its processor.
func TestManyUpdatesASecond(t *testing.T) {
	long(t)
	y := newYard(t)
	for _, id := range []string{"one", "two"} {
		y.worker(t, id)
	}
	sent := feed(t, y.Dial(t).Hub("orders"), updateRate)
	for _, slower := range []float64{1, 4} {
		for _, path := range []string{"", "hubs/orders", "hubs/orders/events", "hubs/orders/groups/billing"} {
			t.Run(fmt.Sprintf("%s/%vx", path, slower), func(t *testing.T) { y.load(t, path, slower, *loadFor, sent) })
		}
	}
}

// load has a page open under load for so long.
func (y *yard) load(t *testing.T, path string, slower float64, lasts time.Duration, sent *atomic.Int64) {
	p := newPage(t, y.base, 1280, "light")
	got := p.receive()
	p.run("slow the page", performance.Enable(), emulation.SetCPUThrottlingRate(slower))
	p.open("/console/" + path)
	testkit.Eventually(t, "a first frame", func() bool { return got.bytes.Load() > 0 })
	idle(t, 5*time.Second) // workers and pictures have found their place
	p.run("observe", evaluate(observers))
	events, frames, bytes, script := sent.Load(), got.frames(), got.bytes.Load(), p.script()
	idle(t, lasts)
	var s seen
	p.run("look", chromedp.Evaluate(`({Lasted: performance.now() - seen.Began, Tasks: seen.Tasks, Moved: seen.Moved})`, &s))
	events, frames, bytes, script = sent.Load()-events, got.frames()-frames, got.bytes.Load()-bytes, p.script()-script
	lasted := s.Lasted / 1000
	t.Logf("%.0f updates/s: %.1f frames/s, %.1f KiB/s, script %.1f %% of a core, %d tasks over 50 ms, the longest %.0f ms, moved by %.3f",
		float64(events)/lasted, float64(frames)/lasted, float64(bytes)/lasted/1024, 100*script/lasted, len(s.Tasks), slices.Max(append(s.Tasks, 0)), s.Moved)
	testkit.That(t, float64(frames) <= frameRate*lasted+frameRate, "%d frames in %.0f s", frames, lasted)
	testkit.That(t, float64(bytes) <= byteRate*lasted, "%d bytes in %.0f s", bytes, lasted)
	testkit.That(t, s.Moved <= layoutMove, "the page moved by %.3f", s.Moved)
}
