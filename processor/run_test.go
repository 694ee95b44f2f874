package processor_test

import (
	"context"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P1, P10
func TestOneInstanceTakesAllPartitionsAndHandlesEveryEventInOrder(t *testing.T) {
	bubble(t, 4, func(w *world) {
		w.hub.SendAll(250)
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.wantAll()
		w.wantSaved("3", 249)
		if c := w.saved("3"); c.Offset != "o249" || c.Epoch != 1 || c.HubID != w.hub.Created().UTC().Format(time.RFC3339Nano) {
			t.Errorf("the checkpoint is %+v", c)
		}
		testkit.Equal(t, w.owners(), "a:0,1,2,3", "owners")
	})
}

// P11
func TestAGracefulStopReleasesLeasesAtOnceAndLeavesNoPresence(t *testing.T) {
	bubble(t, 4, func(w *world) {
		a := w.start(w.config("a"), w.note)
		after(time.Second)
		before := time.Now()
		a.stop()
		if took := time.Since(before); took > time.Second {
			t.Errorf("an idle instance took %v to stop", took)
		}
		w.wantNothingLeft()
		w.hub.SendN("2", 10)
		w.start(w.config("b"), w.note)
		after(100 * time.Millisecond)
		w.wantGot("2", upTo(10)...)
	})
}

// P2: a planned move repeats nothing and leaves nothing out.
func TestANewcomerGetsItsShareByHandoffWithoutRepeats(t *testing.T) {
	for _, strategy := range []processor.Strategy{processor.Balanced, processor.Greedy} {
		bubble(t, 7, func(w *world) {
			cfg := w.config("a")
			cfg.Strategy = strategy
			cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: time.Hour}
			slow := func(ctx context.Context, b *processor.Batch) error {
				time.Sleep(300 * time.Millisecond)
				return w.noteOnly(ctx, b)
			}
			a := w.start(cfg, slow)
			after(time.Second)
			cfg.ID = "b"
			b := w.start(cfg, slow)
			for range 300 {
				w.feedAll(100*time.Millisecond, 3)
			}
			cfg.ID = "c"
			c := w.start(cfg, slow)
			after(2 * time.Minute)
			for id, n := range w.counts() {
				if n < 2 || n > 3 {
					t.Errorf("%s has %d of 7: %s", id, n, w.owners())
				}
			}
			a.stop()
			b.stop()
			c.stop()
			w.wantAll()
			w.wantNoErrors()
		})
	}
}
