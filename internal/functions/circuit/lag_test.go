package circuit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// F5: a store that cannot be watched and takes two seconds for each call is slow, but not blind.
func TestFailuresOfAllCountTogetherInASlowStore(t *testing.T) {
	for _, within := range []time.Duration{20 * time.Second, time.Minute} {
		inWorld(t, breaker.Policy{Failures: 5, Within: within}, func(t *testing.T, w *world) {
			a, b := w.startPolling("a"), w.startPolling("b")
			for _, m := range []*played{a, b} {
				for _, op := range []string{"entries circuit", "entries failures", "put circuit", "put failures"} {
					m.store.slow(op, 2*time.Second)
				}
			}
			pass(time.Minute)
			a.failed(3, false) // which is not too many for one
			b.failed(3, false)
			pass(14 * time.Second)
			testkit.Equal(t, w.stored().State, breaker.Open,
				"within %v: six failures together, and it", within)
			pass(10 * time.Second)
			a.is(breaker.Open)
			b.is(breaker.Open)
		})
	}
}

// F5: many dead instances do not keep a member from seeing the circuit, however slow they are to
// remove.
func TestTheDeadHoldNobodyUp(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.startPolling("a")
		for i := range 50 {
			w.put(fmt.Sprint("failures/resize/dead-", i), `{"term":0,"total":1}`)
		}
		a.store.slow("remove failures", 2*time.Second)
		for range 40 { // until they are stale, and some are being removed
			pass(17 * time.Second)
			w.hold()
			pass(10 * time.Second)
			a.is(breaker.Held)
			w.resume()
			pass(10 * time.Second)
			a.is(breaker.Closed)
		}
		pass(15 * time.Minute)
		if got := w.tallies(); !slices.Equal(got, []string{"failures/resize/a"}) {
			t.Errorf("%d are left", len(got))
		}
	})
}

// F7: that the tallies cannot be read keeps nobody from ending a probe.
func TestAProbeGoesOnWhileTalliesCannotBeRead(t *testing.T) {
	inWorld(t, probes, func(t *testing.T, w *world) {
		all := opened(w, "a")
		all[0].store.set(all[0].store.deny, "entries failures", 1<<30)
		pass(20 * time.Second)
		one := all[0].wait()
		pass(2 * time.Second)
		testkit.MustThat(t, one.passed() && one.pass.Probe, "nobody probes: %+v", w.stored())
		all[0].Returned(one.pass)
		pass(30 * time.Second)
		if r := w.stored(); r.State != breaker.Open || !r.Untried {
			t.Errorf("%+v", r)
		}
	})
}

// lagging is a store with a replica that may be behind.
type lagging struct {
	*faulty
	old atomic.Pointer[[]processor.Entry] // nil: it is not behind
}

func (l *lagging) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if old := l.old.Load(); old != nil && prefix == Prefix {
		return *old, nil
	}
	return l.faulty.Entries(ctx, g, prefix)
}

// F5: a replica that lags behind does not bring a former state back.
func TestAStaleReadClosesNothing(t *testing.T) {
	for _, before := range []string{"never open", "closed before"} {
		t.Run(before, func(t *testing.T) {
			inWorld(t, five, func(t *testing.T, w *world) {
				f := newFaulty(w.store)
				replica := &lagging{faulty: f}
				a := w.startWith("a", f, replica)
				if before == "closed before" {
					w.hold()
					w.resume()
				}
				pass(2 * time.Second)
				old, err := w.store.Entries(t.Context(), group, Prefix)
				testkit.Must(t, err)
				a.failed(6, true)
				waits := a.wait()
				replica.old.Store(&old)
				a.mayPutAway(false)
				pass(1500 * time.Millisecond)
				a.is(breaker.Open)
				replica.old.Store(nil)
				pass(time.Minute)
				replica.old.Store(&old)
				pass(1500 * time.Millisecond)
				a.mayPutAway(false)
				replica.old.Store(nil)
				pass(time.Minute)
				if a.is(breaker.Open); waits.passed() || !strings.HasSuffix(a.heard(), "closed→open") {
					t.Errorf("it has passed: %v; heard %s", waits.passed(), a.heard())
				}
			})
		})
	}
}

// F5: a store that could be watched and then never again is polled.
func TestAStoreThatCannotBeWatchedAnyMoreIsPolled(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		a := w.startWith("a", f, retiring{f})
		pass(time.Minute)
		for range 5 {
			pass(2300 * time.Millisecond)
			w.hold()
			pass(time.Second)
			a.is(breaker.Held)
			w.resume()
			pass(time.Second)
			a.is(breaker.Closed)
		}
	})
}

// retiring can be watched for a while.
type retiring struct{ *faulty }

func (retiring) Watch(ctx context.Context, _ processor.Group, ready func(), _ chan<- struct{}) error {
	ready()
	_ = sleep.For(ctx, 10*time.Second, nil)
	return fmt.Errorf("this server: %w", errors.ErrUnsupported)
}

// F5: a store that reports changes by itself is read when it does, and else rarely.
func TestAStoreIsReadWhenItReportsAChange(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		store := &reporting{faulty: f}
		a := w.startWith("a", f, store)
		pass(time.Minute)
		w.hold()
		reads := f.count("entries circuit")
		store.changed()
		store.changed()
		pass(time.Second)
		a.is(breaker.Held)
		testkit.That(t, f.count("entries circuit") <= reads+2, "it read %d times", f.count("entries circuit")-reads)
	})
}

// reporting has one subscriber.
type reporting struct {
	*faulty
	changed func()
}

func (r *reporting) Subscribe(_ context.Context, _ processor.Group, changed func()) error {
	r.changed = changed
	return nil
}
