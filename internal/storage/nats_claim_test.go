package storage

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fill is a process that fills a yard: it looks what is there, claims it, stores something and ends.
// between is called while it fills.
func fill(t *testing.T, store meta.Store, between func()) error {
	stored, err := store.List(t.Context(), "")
	if err != nil {
		return err
	}
	mark, filled := markOf(stored)
	if mark.Key == "" && filled {
		return ErrYardOccupied
	}
	c, err := claimYard(t.Context(), store, "shop", mark, "test")
	if err != nil {
		return err
	}
	defer c.leave()
	between()
	stored, err = store.List(t.Context(), "")
	if err != nil {
		return err
	}
	revision := meta.Revision(0) // of what another has left
	for _, e := range stored {
		if e.Key == "hubs/orders" {
			revision = e.Revision
		}
	}
	if _, err := store.CompareAndSet(t.Context(), "hubs/orders", revision, []byte("{}")); err != nil {
		return err
	}
	return c.end(t.Context())
}

// beginnings are what those who fill a yard may find: nothing, or what one has left that was killed.
var beginnings = map[string]func(*testing.T, meta.Store){
	"nothing is there": func(*testing.T, meta.Store) {},
	"one was killed": func(t *testing.T, store meta.Store) {
		killed := metatest.NewFaulty(store)
		testkit.ErrorIs(t, fill(t, killed, func() { kill(killed) }), meta.ErrUnavailable)
	},
}

// kill has nothing be done any more that the process of a store wants.
func kill(store *metatest.Faulty) {
	store.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
}

// at has something happen before the nth operation of a process, which is held up meanwhile.
func at(store *metatest.Faulty, n int, do func(metatest.Op)) {
	var count atomic.Int64
	store.Inject(func(op metatest.Op) error {
		if count.Add(1) == int64(n) {
			do(op)
		}
		return nil
	})
}

// renews: the operation says that the process lives.
func renews(op metatest.Op) bool {
	return op.Kind == metatest.OpSet && op.Under(holds.Prefix) && op.Expected != 0
}

// eachOperation tries something at each operation of a process.
func eachOperation(t *testing.T, try func(t *testing.T, store meta.Store, n int) (happened bool)) {
	for name, begin := range beginnings {
		t.Run(name, func(t *testing.T) {
			for n, more := 1, true; more; n++ {
				synctest.Test(t, func(t *testing.T) {
					store := metatest.NewMemory()
					begin(t, store)
					more = try(t, store, n)
				})
				testkit.MustThat(t, n < 100, "it does not end")
			}
		})
	}
}

// C7: of a process that fills a yard and one that comes at any moment, one fills it and the other says
// that it is filled. One that is frozen for so long that it seems dead is told in the end.
func TestOneFillsAYard(t *testing.T) {
	eachOperation(t, func(t *testing.T, store meta.Store, n int) (happened bool) {
		first := metatest.NewFaulty(store)
		var second error
		var frozen bool
		var filling atomic.Int64
		at(first, n, func(op metatest.Op) {
			happened, frozen = true, renews(op)
			second = fill(t, store, func() { filling.Add(1) })
		})
		err := fill(t, first, func() { time.Sleep(10 * time.Second); filling.Add(1) })
		if !happened {
			testkit.Must(t, err)
			return false
		}
		testkit.That(t, (err == nil) != (second == nil), "before operation %d: %v, and the other %v", n, err, second)
		testkit.That(t, filling.Load() == 1 || frozen, "before operation %d: %d fill it", n, filling.Load())
		for _, err := range []error{err, second} {
			testkit.That(t, err == nil || errors.Is(err, ErrRestoring) || errors.Is(err, ErrYardOccupied), "before operation %d: %v", n, err)
		}
		return true
	})
}

// C7: wherever a process is killed that fills a yard, another fills it, unless it is filled.
func TestAnotherFillsWhatWasLeft(t *testing.T) {
	eachOperation(t, func(t *testing.T, store meta.Store, n int) (happened bool) {
		first := metatest.NewFaulty(store)
		at(first, n, func(metatest.Op) {
			happened = true
			kill(first)
		})
		err := fill(t, first, func() {})
		second := fill(t, store, func() {})
		testkit.That(t, second == nil || err == nil && errors.Is(second, ErrYardOccupied), "before operation %d: %v, and then %v", n, err, second)
		mark, filled := markOf(testkit.Value(store.List(t.Context(), ""))(t))
		testkit.That(t, filled && mark.Key == "", "before operation %d: filled %v, marked by %q", n, filled, mark.Value)
		return happened
	})
}

// C7: wherever a process is killed that wants to fill a yard which a node has begun to use meanwhile, the
// next one does not take what the node has stored for what was left: it refuses, and nodes start again.
func TestWhatANodeStoresIsNotTakenForWhatWasLeft(t *testing.T) {
	for before, more := 1, true; more; before++ {
		for killed, goesOn := before, true; goesOn; killed++ {
			synctest.Test(t, func(t *testing.T) {
				store := metatest.NewMemory()
				first := metatest.NewFaulty(store)
				var count atomic.Int64
				came, used, ended := false, false, false
				first.Inject(func(metatest.Op) error {
					n := int(count.Add(1))
					if n == before { // a node starts: it stores something, and then looks for a mark
						testkit.Must(t, testkit.Err(store.CompareAndSet(t.Context(), "secrets/agreed", 0, []byte("{}"))))
						mark, _ := markOf(testkit.Value(store.List(t.Context(), ""))(t))
						came, used = true, mark.Key == ""
					}
					if ended = ended || n >= killed; ended {
						return meta.ErrUnavailable
					}
					return nil
				})
				err := fill(t, first, func() {})
				if more = came; !used {
					goesOn = false
					return
				}
				second := fill(t, store, func() {})
				testkit.ErrorIs(t, second, ErrYardOccupied, "used before operation %d, killed before %d (%v)", before, killed, err)
				mark, _ := markOf(testkit.Value(store.List(t.Context(), ""))(t))
				testkit.Equal(t, mark.Key, "", "the mark that is left")
				goesOn = ended
			})
			testkit.MustThat(t, killed < 100, "it does not end")
		}
		testkit.MustThat(t, before < 100, "it does not end")
	}
}
