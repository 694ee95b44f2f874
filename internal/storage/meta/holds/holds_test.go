package holds

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func held(t *testing.T, l *Looker, want bool, when string) {
	t.Helper()
	is, err := l.Held(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, is, want, when)
}

// C7: others, whose reads are late, see a hold from when it was begun until it is released, however long
// that is, and no hold of another kind.
func TestAHoldHoldsUntilItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		looker, bodies := NewLooker(metatest.NewLateNode(store), Trimmed), NewLooker(metatest.NewLateNode(store), Bodies)
		held(t, looker, false, "before")
		one, err := Begin(t.Context(), store, Trimmed)
		testkit.Must(t, err)
		other, err := Begin(t.Context(), store, Trimmed)
		testkit.Must(t, err)
		for range 30 {
			held(t, looker, true, "while two hold")
			held(t, bodies, false, "bodies")
			time.Sleep(20 * time.Second)
		}
		testkit.Must(t, one.Release(t.Context()))
		testkit.Must(t, one.Release(t.Context()), "twice")
		held(t, looker, true, "while one holds")
		testkit.Must(t, other.Release(t.Context()))
		held(t, looker, false, "afterwards")
	})
}

// C7: what a process that was killed held is let go after a minute, and one that only could not write for
// so long is told.
func TestAHoldThatNobodyWritesIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		broken := metatest.NewFaulty(store)
		hold, err := Begin(t.Context(), broken, Trimmed)
		testkit.Must(t, err)
		broken.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
		looker := NewLooker(store, Trimmed)
		began := time.Now()
		for {
			is, err := looker.Held(t.Context())
			testkit.Must(t, err)
			if !is {
				break
			}
			time.Sleep(time.Second)
		}
		testkit.Equal(t, time.Since(began).Round(time.Second), Trimmed.life(), "how long it held")
		testkit.ErrorIs(t, hold.Release(t.Context()), meta.ErrUnavailable, "while nothing is known")

		broken.Inject(nil)
		testkit.ErrorIs(t, hold.Release(t.Context()), meta.ErrUnavailable, "it gives the same again")
	})
}

// C7: a process knows before others may end its hold that they may, however often it was renewed before.
func TestAHoldStandsNoLongerThanOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		broken := metatest.NewFaulty(store)
		hold := testkit.Value(Begin(t.Context(), broken, Filling))(t)
		time.Sleep(time.Hour)
		testkit.That(t, hold.Stands(), "it does not stand while it is renewed")
		broken.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
		looker, held := NewLooker(store, Filling), true
		for held {
			stood := hold.Stands()
			held = testkit.Value(looker.Held(t.Context()))(t)
			testkit.That(t, held || !stood, "it stands, and others have ended it")
			time.Sleep(100 * time.Millisecond)
		}
		testkit.ErrorIs(t, hold.Release(t.Context()), meta.ErrUnavailable)
	})
}

// C7: of several who want a hold alone one has it, until it is released or its process is dead; and a process
// whose hold another has by now does not take that for its own.
func TestAHoldThatOneHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		broken := metatest.NewFaulty(store)
		first := testkit.Value(BeginAlone(t.Context(), broken, Replicas))(t)
		testkit.ErrorIs(t, testkit.Err(BeginAlone(t.Context(), store, Replicas)), ErrHeld, "another")
		broken.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
		second := testkit.Value(BeginAlone(t.Context(), store, Replicas))(t)
		testkit.That(t, !first.Stands() && second.Stands(), "who was dead stands")
		broken.Inject(nil)
		<-first.Ended()
		testkit.ErrorIs(t, first.Release(t.Context()), ErrLost, "the first")
		testkit.ErrorIs(t, testkit.Err(BeginAlone(t.Context(), store, Replicas)), ErrHeld, "another")
		testkit.Must(t, second.Release(t.Context()))
		third := testkit.Value(BeginAlone(t.Context(), store, Replicas))(t)
		testkit.Must(t, third.Release(t.Context()))
	})
}

// C7: a hold that others have ended is lost, whether it finds out when it writes or at its end.
func TestALostHoldIsNoted(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at its end": 0, "when it writes": Bodies.renew() + time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := metatest.NewMemory()
				hold, err := Begin(t.Context(), store, Bodies)
				testkit.Must(t, err)
				all, err := store.List(t.Context(), Prefix)
				testkit.Must(t, err)
				testkit.MustEqual(t, len(all), 1, "entries")
				testkit.Must(t, store.Delete(t.Context(), all[0].Key, all[0].Revision))
				time.Sleep(wait)
				testkit.ErrorIs(t, hold.Release(t.Context()), ErrLost)
			})
		})
	}
}

// A write of which it is not known whether it was made leaves the hold as it is.
func TestAHoldAfterDoubt(t *testing.T) {
	for name, fault := range map[string]error{
		"it was stored": metatest.After(func(error) error { return meta.ErrUncertain }), "it was not": meta.ErrUncertain,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := metatest.NewFaulty(metatest.NewMemory())
				hold, err := Begin(t.Context(), store, Bodies)
				testkit.Must(t, err)
				var doubts atomic.Int64
				store.Inject(func(op metatest.Op) error {
					if op.Kind != metatest.OpSet {
						return nil
					}
					doubts.Add(1)
					return fault
				})
				looker := NewLooker(store, Bodies)
				time.Sleep(2*Bodies.renew() + time.Second)
				testkit.Equal(t, doubts.Load(), 2, "writes")
				held(t, looker, true, "after doubt")
				testkit.Must(t, hold.Release(t.Context()))
				held(t, looker, false, "after it was released")
			})
		})
	}
}
