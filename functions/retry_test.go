package functions

import (
	"context"
	"testing"
	"time"
)

// F3
func TestRetriesHappenWhereTheyAreAndKeepOrder(t *testing.T) {
	bubble(t, 1, func(w *world) {
		b := binding()
		b.MaxBatch = 2
		w.orders.SendN("0", 6)
		fails := 2
		in := w.start("a", func(ctx context.Context, batch *Batch) error {
			if batch.Events[0].Sequence == 2 && fails > 0 {
				fails--
				return errBad
			}
			return nil
		}, b)
		after(500 * time.Millisecond)
		w.wantCalls("0:0-1 1", "0:2-3 1")
		w.wantSaved("0", 1)
		after(time.Second)
		w.wantCalls("0:0-1 1", "0:2-3 1", "0:2-3 2")
		after(time.Second)
		w.wantCalls("0:0-1 1", "0:2-3 1", "0:2-3 2", "0:2-3 3", "0:4-5 1")
		w.wantSaved("0", 5)
		w.wantAway()
		in.stop()
	})
}

// F4
func TestABatchThatFailsIsBisectedAndOnlyTheGuiltyArePutAway(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 8)
		in := w.start("a", failOn("5"), binding())
		after(10 * time.Second)
		w.wantCalls("0:0-7 1", "0:0-7 2", "0:0-7 3", "0:0-3 4", "0:4-7 4", "0:4-5 5", "0:4 6", "0:5 6", "0:5 7", "0:6-7 5")
		w.wantAway("0/5")
		l := w.poisonEvents()[0]
		if l.Reason != "bad event 5" || l.Attempts != 7 || l.Function != "bill" || string(l.Event.Body) != "5" || l.Instance != "a" {
			t.Errorf("the poison event is %+v", l)
		}
		w.wantSaved("0", 7)
		in.stop()
		if work := w.work("0"); len(work.Units) > 0 || len(work.Away) > 0 || !work.Clean {
			t.Errorf("left behind %s", show(work))
		}
	})
}
