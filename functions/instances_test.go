package functions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

// pair is two hosts with a partition each.
type pair struct {
	w     *world
	hosts []*instance
	sent  int
}

// inPair runs a test with hosts that have shared the partitions. The handler is told which of them
// calls, and of the first event.
func inPair(t *testing.T, batch int, breaker Breaker, handle func(host string, ev event.Event) error, test func(p *pair)) {
	bubble(t, 2, func(w *world) {
		p := &pair{w: w}
		b := binding()
		b.MaxBatch, b.Retry, b.Breaker = batch, Fixed(2, 50*time.Millisecond), breaker
		for _, name := range []string{"a", "b"} {
			p.hosts = append(p.hosts, w.start(name, func(_ context.Context, b *Batch) error { return handle(name, b.Events[0]) }, b))
		}
		after(time.Minute)
		test(p)
		for _, in := range p.hosts {
			in.stop()
		}
	})
}

// traffic sends an event to each of those partitions every half second.
func (p *pair) traffic(d time.Duration, partitions ...string) {
	for range int(d / (500 * time.Millisecond)) {
		p.sent++
		for _, id := range partitions {
			p.w.orders.Send(id, fmt.Sprint("event ", p.sent))
		}
		after(500 * time.Millisecond)
	}
}

func is(ev event.Event, text string) bool { return strings.Contains(string(ev.Body), text) }

// R7, F4: the event that is alone at its instance is found by what succeeds at another.
func TestTheEventThatBringsItsProgramDownIsFoundByAnotherInstance(t *testing.T) {
	for name, c := range map[string]struct {
		breaker Breaker
		err     error
		away    []string
		restart time.Duration // for so long nobody gets through then
	}{
		"it takes others with it":            {Breaker{Off: true}, Unavailable(errors.New("EOF")), []string{"0/3"}, 300 * time.Millisecond},
		"it takes others with it for longer": {Breaker{Off: true}, Unavailable(errors.New("EOF")), []string{"0/3"}, 3 * time.Second},
		"503":                                {Breaker{}, Unavailable(errors.New("503")), []string{"0/3"}, 0},
		"503 without a breaker":              {Breaker{Off: true}, Unavailable(errors.New("503")), []string{"0/3"}, 0},
		"503 with a wish":                    {Breaker{}, RetryAfter(20*time.Second, Unavailable(errors.New("503"))), []string{"0/3"}, 0},
		"what cannot be reached":             {Breaker{Off: true}, &unavailable{errors.New("refused"), true}, nil, 0},
		"503 and a short window":             {Breaker{Failures: 50, Within: 5 * time.Second}, Unavailable(errors.New("503")), []string{"0/3"}, 0},
		"503 and a window of days":           {Breaker{Failures: 1000, Within: 48 * time.Hour}, Unavailable(errors.New("503")), []string{"0/3"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var back atomic.Pointer[time.Time] // when the program is up again
			back.Store(new(time.Time))
			inPair(t, 1, c.breaker, func(_ string, ev event.Event) error {
				switch {
				case time.Now().Before(*back.Load()):
					return &unavailable{errors.New("refused"), true}
				case is(ev, "deadly"):
					back.Store(new(time.Now().Add(c.restart)))
					return c.err
				}
				return nil
			}, func(p *pair) {
				p.w.orders.Send("0", "x", "y", "z", "deadly", "u", "v")
				p.traffic(3*time.Minute, "1")
				after(20 * time.Minute) // who comes first after a restart is chance
				p.w.wantAway(c.away...)
				if c.away != nil {
					p.w.wantAll(c.away...)
				}
				p.w.wantState("closed")
			})
		})
	}
}

// R7, F4: where everything is down nothing is put away, however well it was just before, and however
// short the time was for which it was well again.
func TestWhatIsDownForAllInstancesIsNoEventsFault(t *testing.T) {
	for name, c := range map[string]struct {
		up, down time.Duration // by turns
		idle     []string      // partitions with nothing to do
	}{
		"for long":                  {time.Minute, 10 * time.Minute, nil},
		"of which one knows only":   {time.Minute, 10 * time.Minute, []string{"1"}},
		"again and again":           {25 * time.Second, 25 * time.Second, nil},
		"now and then":              {3 * time.Second, 7 * time.Second, nil},
		"for less than the retries": {5 * time.Second, 80 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			began := sync.OnceValue(time.Now) // in the bubble, by the first call of either instance
			inPair(t, 1, Breaker{Failures: 1000}, func(string, event.Event) error {
				if time.Since(began())%(c.up+c.down) >= c.up {
					return Unavailable(errors.New("503"))
				}
				return nil
			}, func(p *pair) {
				busy := slices.DeleteFunc([]string{"0", "1"}, func(id string) bool { return slices.Contains(c.idle, id) })
				for range 12 {
					p.traffic(10*time.Second, busy...)
				}
				p.w.wantAway()
			})
		})
	}
}

// R7: an instance that alone cannot get through learns little from those that can: at most one event
// is judged by them before it has succeeded itself.
func TestAnInstanceThatIsCutOffPutsHardlyAnythingAway(t *testing.T) {
	for _, batch := range []int{1, 8} {
		t.Run(fmt.Sprintf("batches of %d", batch), func(t *testing.T) {
			var cut atomic.Bool
			inPair(t, batch, Breaker{Off: true}, func(host string, ev event.Event) error {
				if cut.Load() && host == "a" {
					return Unavailable(errors.New("502 of a proxy"))
				}
				return nil
			}, func(p *pair) {
				p.traffic(time.Minute, "0", "1")
				cut.Store(true)
				p.w.orders.SendN("0", 8) // together
				p.w.orders.SendN("1", 8)
				for range 2 {
					p.traffic(30*time.Minute, "0", "1")
					testkit.That(t, len(p.w.poisonEvents()) <= 1, "%d events were put away", len(p.w.poisonEvents()))
					cut.Store(false)
				}
			})
		})
	}
}

// F5: an outage opens the circuit also where attempts are hours apart, because the program or the
// policy wants it so.
func TestAnOutageWithLongWaitsOpensTheCircuit(t *testing.T) {
	down := errors.New("503")
	for name, c := range map[string]struct {
		retry Retry
		err   error
		every time.Duration
	}{
		"by Retry-After":  {Fixed(2, time.Second), RetryAfter(time.Hour, Unavailable(down)), time.Hour},
		"by the policy":   {Fixed(2, 24*time.Hour), Unavailable(down), 24 * time.Hour},
		"by one for ever": {Fixed(Forever, 10*time.Minute), Unavailable(down), 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				b := binding()
				b.Retry = c.retry
				in := w.start("a", func(context.Context, *Batch) error { return c.err }, b)
				w.orders.SendN("0", 1)
				after(c.every / 2)
				w.wantState("closed")
				after(c.every)
				w.wantState("open")
				w.wantAway()
				in.stop()
			})
		})
	}
}
