package processor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

var errLink = errors.New("the link is gone")

// A partition with nothing to read makes no progress, and yet nothing is wrong with it.
func TestAnIdlePartitionWhoseLinkBreaksNowAndThenIsKept(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), w.note)
		for range 5 {
			after(3 * time.Minute)
			w.hub.Cut("0", errLink)
		}
		after(time.Minute)
		if l := w.lease("0"); w.reported(processor.ErrStalled) || l.Owner != "a" || l.Epoch != 1 {
			t.Errorf("lease %+v, errors %v", l, w.errs)
		}
	})
}

func TestABrokenLinkAfterAnEvictionIsOneTrouble(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.hub.Cut("0", hub.ErrEvicted)
		after(time.Second)
		w.hub.Cut("0", errLink)
		after(time.Second)
		if l := w.lease("0"); w.reported(processor.ErrStalled) || l.Owner != "a" || l.Epoch != 1 {
			t.Errorf("lease %+v, errors %v", l, w.errs)
		}
	})
}

// What one instance may not read any more, others may.
func TestAPartitionThatAnInstanceMayNotReadIsGivenToOthers(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.start(w.config("b"), w.note)
		after(time.Minute)
		w.hub.FailOpen(func(cfg hub.ReadConfig) error {
			if cfg.Name == "a" {
				return hub.ErrUnauthorized
			}
			return nil
		})
		for _, p := range w.hub.IDs() {
			w.hub.Cut(p, errLink)
			w.hub.SendN(p, 3)
		}
		after(10 * time.Minute)
		w.wantAll()
	})
}

func TestPartitionsThatAreNoMoreAreGivenUp(t *testing.T) {
	bubble(t, 3, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.hub.Shrink(1)
		after(10 * time.Minute)
		testkit.Equal(t, w.owners(), "a:0", "owners")
	})
}
