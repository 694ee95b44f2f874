package circuit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

var ten = breaker.Policy{Failures: 10, Within: 30 * time.Second}

// rush has each member's workers put away as much as they may, all at once, and gives how much that
// was.
func (w *world) rush(all []*played, workers, stretch int) int {
	var away atomic.Int64
	var running sync.WaitGroup
	for _, m := range all {
		for range workers {
			running.Go(func() {
				for {
					n, _, err := m.MayPutAway(w.t.Context(), AnyTerm, stretch, breaker.Sample{Error: "no"})
					testkit.Must(w.t, err)
					away.Add(int64(n))
					if n < stretch {
						return
					}
				}
			})
		}
	}
	running.Wait()
	pass(time.Second) // who was allowed a part hears of it before the rest opens the circuit
	return int(away.Load())
}

// F5, F7: what failed before the circuit was closed anew is tried again, and neither put away nor
// counted: whoever closed it has mended something.
func TestFailuresOfEarlierTermsAreNotPutAway(t *testing.T) {
	inWorld(t, ten, func(t *testing.T, w *world) {
		a := w.start("a")
		before, _ := a.Record()
		testkit.Equal(t, w.rush([]*played{a}, 1, 1), 10, "events put away")
		w.resume()
		pass(2 * time.Second)
		n, _, err := a.MayPutAway(t.Context(), before.Term, 1, breaker.Sample{Error: "of before"})
		testkit.That(t, n == 0 && err == nil, "allowed %d, %v", n, err)
		testkit.Equal(t, w.rush([]*played{a}, 1, 1), 10, "events put away after it")
	})
}

// R7, F5: whatever the number of instances and however they hear of each other, ten are put away,
// and the eleventh opens the circuit; and so it is again after it was closed.
func TestTenArePutAwayAndTheEleventhOpensIt(t *testing.T) {
	for _, k := range []int{1, 2, 5} {
		for _, stretch := range []int{1, 3, 20} {
			for name, start := range map[string]func(*world, string) *played{"watched": (*world).start, "polled": (*world).startPolling} {
				t.Run(fmt.Sprintf("%d instances, %d at a time, %s", k, stretch, name), func(t *testing.T) {
					inWorld(t, ten, func(t *testing.T, w *world) {
						var all []*played
						for i := range k {
							m := start(w, fmt.Sprint("m", i))
							m.store.slow("entries failures", time.Duration(i)*time.Millisecond)
							m.store.slow("put circuit", 3*time.Millisecond)
							all = append(all, m)
						}
						for range 3 {
							testkit.Equal(t, w.rush(all, 3, stretch), 10, "events put away")
							r := w.stored()
							testkit.That(t, r.State == breaker.Open && r.Failures > 10 && len(r.Samples) > 0 && r.Decided == nil, "%+v", r)
							w.resume()
							pass(2 * time.Second)
						}
					})
				})
			}
		}
	}
}

// R7: also where they do not come all at once, and some of it is of attempts.
func TestWhatOthersCountLeavesLessRoom(t *testing.T) {
	inWorld(t, ten, func(t *testing.T, w *world) {
		a, b, c := w.start("a"), w.startPolling("b"), w.start("c")
		a.putsAway(2, 2)
		b.putsAway(3, 3)
		c.failed(1, false)
		pass(time.Second)
		a.putsAway(1, 1)
		b.putsAway(9, 3)
		c.mayPutAway(false)
		a.mayPutAway(false)
	})
}

// R7: an instance that has just come does not know how old the others' failures are. What they may
// forbid it waits for, and no longer than the living need to tell.
func TestANewcomerWaitsUntilItKnows(t *testing.T) {
	inWorld(t, ten, func(t *testing.T, w *world) {
		a := w.start("a")
		a.putsAway(8, 8)
		pass(time.Second)
		b := w.start("b")
		began := time.Now()
		b.putsAway(2, 2) // there is room in any case
		testkit.That(t, time.Since(began) < time.Second, "it took %v", time.Since(began))
		b.putsAway(1, 0)
		b.is(breaker.Open)
	})
	inWorld(t, ten, func(t *testing.T, w *world) {
		w.put("failures/resize/dead", `{"term":0,"buckets":[{"age":0,"n":100}],"total":100}`)
		pass(time.Hour)
		b := w.start("b")
		began := time.Now()
		b.putsAway(1, 1)
		testkit.That(t, time.Since(began) < 10*time.Second, "the dead held it up for %v", time.Since(began))
	})
}

// R7: what an instance decided before it died, and could not write into its tally any more, counts.
func TestWhatTheDeadDecidedCounts(t *testing.T) {
	inWorld(t, ten, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		pass(time.Second)
		a.store.set(a.store.deny, "put failures", 1000)
		a.putsAway(7, 7)
		a.die()
		b.putsAway(2, 2)
		b.putsAway(2, 1)
		b.mayPutAway(false)
		w.resume()
		pass(time.Second)
		b.putsAway(10, 10)
		pass(ten.Within)
		b.putsAway(10, 10)
	})
}

// F5: who comes back under its name begins where it was.
func TestAnInstanceThatComesBackIsNotCountedTwice(t *testing.T) {
	inWorld(t, ten, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.putsAway(6, 6)
		pass(time.Minute)
		a.leave()
		a = w.start("a")
		pass(time.Minute)
		b.putsAway(9, 9)
		a.putsAway(1, 1)
		a.mayPutAway(false)
	})
}

// R7, F5: where attempts are counted a put-away counts for nothing more, but wants room, too.
func TestWhereAttemptsAreCounted(t *testing.T) {
	p := ten
	p.Attempts = true
	inWorld(t, p, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.failed(6, false)
		a.putsAway(6, 6)
		b.failed(5, false)
		b.putsAway(1, 0) // it knows at once what a had when it decided
		a.mayPutAway(false)
	})
}

// F8: a stretch of failures is one round of the store, and so are those of all partitions that come
// meanwhile.
func TestAStretchIsOneRound(t *testing.T) {
	inWorld(t, many, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		reads, writes := a.store.count("entries failures"), a.store.count("put circuit")
		a.putsAway(50, 50)
		testkit.That(t, a.store.count("entries failures")-reads == 1 && a.store.count("put circuit")-writes == 1, "%v", a.store.calls)
		a.store.slow("put circuit", time.Second)
		var running sync.WaitGroup
		for range 40 {
			running.Go(func() { a.mayPutAway(true) })
		}
		running.Wait()
		testkit.That(t, a.store.count("put circuit")-writes <= 4, "%v", a.store.calls)
	})
}

// P11: who asks when the instance leaves, or leaves itself, is answered.
func TestWhoAsksInVainIsAnswered(t *testing.T) {
	inWorld(t, ten, func(t *testing.T, w *world) {
		a := w.start("a")
		a.store.slow("entries circuit", 2*time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(errDown)
		}()
		_, _, err := a.MayPutAway(ctx, AnyTerm, 1)
		testkit.ErrorIs(t, err, errDown)
		a.leave()
		if n, _, err := a.MayPutAway(t.Context(), AnyTerm, 1); n != 0 || !errors.Is(err, errEnded) {
			t.Errorf("%d, %v", n, err)
		}
	})
}
