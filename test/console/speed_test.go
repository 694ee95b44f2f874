package console

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/internal/testkit"
)

// opened is how often each page is opened to be timed, and pressed how often a button of it is pressed.
const opened, pressed = 9, 3

// observe takes note of the largest paint, and of how long the page took to show what a press has done.
const observe = `window.paint = 0; window.answered = 0;
	new PerformanceObserver(l => { for (const e of l.getEntries()) window.paint = Math.max(window.paint, e.startTime); }).observe({type: "largest-contentful-paint", buffered: true});
	new PerformanceObserver(l => { for (const e of l.getEntries()) if (e.interactionId) window.answered = Math.max(window.answered, e.duration); }).observe({type: "event", buffered: true, durationThreshold: 16});`

// V4: how soon pages are there, and how soon they answer a press: the first byte of small hubs and of large ones, the
// largest paint, and from a press to the next paint, while events come in. It says the figures, and judges none.
func TestHowSoonPagesAreThere(t *testing.T) {
	long(t)
	y := newYard(t)
	y.furnish(t)
	y.Hub(t, "small", 16, "billing")
	y.Hub(t, "large", 1024, "billing")
	feed(t, y.Dial(t).Hub("small"), updateRate)
	feed(t, y.Dial(t).Hub("large"), updateRate)
	p := newPage(t, y.base, 1280, "light")
	p.inject("observe", observe)
	for _, path := range []string{"", "hubs", "hubs/small", "hubs/small/groups/billing", "hubs/small/events", "hubs/large", "hubs/large/groups/billing", "topics", "topics/shop/subscriptions/mailer", "functions", "access", "storage"} {
		var bytes, paints, presses []time.Duration
		for i := range opened {
			p.open("/console/" + path)
			p.await("the whole page", settled+" && window.paint > 0")
			bytes, paints = append(bytes, p.took(`performance.getEntriesByType("navigation")[0].responseStart - performance.getEntriesByType("navigation")[0].requestStart`)), append(paints, p.took(`window.paint`))
			if i < pressed {
				mouse{}.push(p, "button.theme")
				p.await("what the press has done", `window.answered > 0`)
				presses = append(presses, p.took(`window.answered`))
			}
		}
		t.Logf("/console/%-34s first byte %s; largest paint %s; press to next paint %s", path, spread(bytes), spread(paints), spread(presses))
	}
}

// moves takes note of what moves without being asked to, from the first paint on, and of whether the page came without what
// was still being looked for.
const moves = `window.moved = 0; window.late = false;
	new PerformanceObserver(l => { for (const e of l.getEntries()) if (!e.hadRecentInput) window.moved += e.value; }).observe({type: "layout-shift", buffered: true});
	document.addEventListener("DOMContentLoaded", () => { window.late = document.querySelector(".looking") !== null; });`

// V4: nothing of a page jumps while it loads, at a desk and on a phone. Of one that comes before all of it is known, and
// says that it still looks, it is said how much moved, and not judged.
func TestPagesDoNotJumpWhileTheyLoad(t *testing.T) {
	long(t)
	y := newYard(t)
	y.furnish(t)
	for _, width := range []int{1280, 390} {
		p := newPage(t, y.base, width, "light")
		p.inject("take note of what moves", moves)
		for _, path := range []string{
			"", "hubs", "hubs/orders", "hubs/orders/events", "hubs/orders/groups", "hubs/orders/groups/billing", "topics", "topics/shop", "topics/shop/subscriptions/mailer", "functions", "functions/resize", "activity", "access", "storage",
		} {
			var moved float64
			var late bool
			p.open("/console/" + path)
			p.await("the whole page", settled)
			p.run("look", chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => setTimeout(() => done(window.moved), 100)))`, &moved,
				func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }), chromedp.Evaluate(`window.late`, &late))
			t.Logf("/console/%-34s at %4d moved by %.3f; still looking at first: %v", path, width, moved, late)
			testkit.That(t, late || moved <= layoutMove, "/console/%s at %d moved by %.3f while it loaded", path, width, moved)
		}
	}
}

// took is what a script measures, in milliseconds.
func (p *page) took(expression string) time.Duration {
	p.t.Helper()
	var ms float64
	p.run("measure", chromedp.Evaluate(expression, &ms))
	return time.Duration(ms * float64(time.Millisecond))
}

// spread is the middle of several times and the longest.
func spread(all []time.Duration) string {
	slices.Sort(all)
	shown := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	return fmt.Sprintf("%s, at most %s", shown(all[len(all)/2]), shown(all[len(all)-1]))
}

// chips are how many partitions a page has at an instance.
func chips(id string, n int) string {
	return fmt.Sprintf(`document.querySelectorAll('[data-instance="%s"] .chip:not(.coming):not(.going)').length === %d`, id, n)
}

// noteWhen has the page take note of when something is first true of it.
func (p *page) noteWhen(expression string) {
	p.t.Helper()
	p.run("note when", evaluate(`window.noted = 0; window.looks?.disconnect(); (() => {
		const look = () => { if (!window.noted && (`+expression+`)) window.noted = Date.now(); };
		window.looks = new MutationObserver(look);
		window.looks.observe(document.getElementById("part-lanes"), {subtree: true, childList: true, attributes: true});
		look();
	})(); 0`))
}

// noted is when that was.
func (p *page) noted(what string) time.Time {
	p.t.Helper()
	p.await(what, `window.noted > 0`)
	var at int64
	p.run("read when", chromedp.Evaluate(`window.noted`, &at))
	return time.UnixMilli(at)
}

// movesWithin is how long after a lease has run out its partition has to be with another on the page.
const movesWithin = 2 * time.Second

// P6, V4: how soon the chips of a group follow: a handover, from when the new owner has its leases, which is said, and a
// kill, from when it happens, which is no more than a lease and two seconds.
func TestHowSoonChipsFollow(t *testing.T) {
	long(t)
	y := newYard(t)
	feed(t, y.Dial(t).Hub("orders"), updateRate)
	p := newPage(t, y.base, 1280, "light")
	for range 3 {
		one := y.worker(t, "one")
		p.open("/console/hubs/orders/groups/billing")
		p.await("all partitions with the first", chips("one", 4))
		p.noteWhen(chips("one", 2) + " && " + chips("two", 2))
		two := y.worker(t, "two")
		shown := p.noted("two partitions each")
		t.Logf("a handover is on the page after %v", shown.Sub(y.acquired(t, "two")).Round(time.Millisecond))
		p.noteWhen(chips("one", 4))
		killed := time.Now()
		testkit.Must(t, two.Process.Kill())
		took := p.noted("all partitions with the one that is left").Sub(killed)
		t.Logf("a kill is on the page after %v, with leases of %v", took.Round(time.Millisecond), lease)
		testkit.That(t, took <= lease+movesWithin, "a kill is on the page after %v, and leases are of %v", took, lease)
		testkit.Must(t, one.Process.Kill())
		for _, partition := range testkit.Value(y.client.Hub(t.Context(), "orders"))(t).PartitionIDs {
			testkit.Must(t, testkit.Err(y.client.ReleasePartition(t.Context(), "orders", "billing", partition)))
		}
	}
}

// acquired is when an instance got the last of its partitions.
func (y *yard) acquired(t *testing.T, id string) (last time.Time) {
	t.Helper()
	for _, p := range testkit.Value(y.client.Ownership(t.Context(), "orders", "billing", 0))(t).Partitions {
		if p.Owner == id && p.Acquired != nil && p.Acquired.After(last) {
			last = p.Acquired.Time
		}
	}
	return last
}
