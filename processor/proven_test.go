package processor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/fakehub"
	"github.com/eventyard/eventyard/processor"
)

// slowHub takes long to open a reader, whatever the context says.
type slowHub struct {
	*fakehub.Hub
	delay time.Duration
}

func (h slowHub) Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	time.Sleep(h.delay)
	return h.Hub.Open(ctx, cfg)
}

// P3: no call of any kind but Close starts once the lease cannot be proven, or the partition is
// given up.
func TestAWorkerIsNotOpenedAfterTheLeaseIsLost(t *testing.T) {
	for _, stop := range []bool{false, true} {
		bubble(t, 1, func(w *world) {
			cfg, cut := w.faulty("a")
			d := &diary{w: w, process: w.note}
			p := processor.New(slowHub{w.hub, time.Minute}, cfg)
			a := w.run(p, func(ctx context.Context) error {
				return p.RunHost(ctx, func(string) processor.Worker { return d })
			})
			after(5 * time.Second)
			if stop {
				a.stopLeaving("partition 0: hub or store has not answered")
			} else {
				cut.setDown(true)
			}
			after(time.Minute - time.Second)
			if got := d.list(); len(got) > 0 {
				t.Errorf("the worker saw %v", got)
			}
			cut.setDown(false)
			if !stop {
				a.stop()
			}
			after(time.Hour)
		})
	}
}

// A call that took too long has failed, also when the processor stops before it returns.
func TestACallThatTookTooLongHasFailedAlsoWhenTheProcessorStops(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.HandlerTimeout, cfg.Checkpoints.Auto, cfg.Stop = time.Second, true, 4*time.Second
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			<-ctx.Done()
			time.Sleep(4 * time.Second)
			return nil
		})
		w.feed(1500*time.Millisecond, "0", 3)
		a.stop()
		w.wantSaved("0", -1)
	})
}

// P3: Close works for another instance's good, and only while that has to wait.
func TestTheContextOfCloseEndsWithTheLease(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg, cut := w.faulty("a")
		cfg.Handoff = 5 * time.Minute
		var cause error
		d := &diary{w: w, process: w.note}
		d.close = func(ctx context.Context, _ *processor.Partition, why processor.Reason) error {
			if why == processor.Handoff {
				cut.setDown(true)
				begin := time.Now()
				<-ctx.Done()
				cause = context.Cause(ctx)
				if took := time.Since(begin); took > 31*time.Second {
					t.Errorf("took %v", took)
				}
			}
			return nil
		}
		w.startHost(cfg, func(string) processor.Worker { return d })
		after(time.Second)
		cfg = w.config("b")
		cfg.Handoff = 5 * time.Minute
		w.start(cfg, w.note)
		after(6 * time.Minute)
		testkit.ErrorIs(t, cause, processor.ErrLeaseLost, "the context ended with")
		cut.setDown(false)
	})
}

// P11: what is left behind is dead after a lease, and no stranger's: its presence stays to tell so.
func TestWhatAStopLeavesBehindIsNotTakenForAStrangers(t *testing.T) {
	bubble(t, 2, func(w *world) {
		hang := make(chan struct{})
		a := w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error { <-hang; return nil })
		w.feed(time.Second, "0", 1)
		a.stopLeaving("partition 0: the handler has not returned")
		if got := w.entries(); !slices.Contains(got, "presence/a") {
			t.Errorf("entries %v", got)
		}
		if len(w.errs) != 1 || w.errs[0].Error() != "partition 0: stop: the handler has not returned" {
			t.Errorf("errors %v", w.errs)
		}
		w.start(w.config("b"), w.note)
		after(50 * time.Second)
		w.wantAll()
		for _, cfg := range w.hub.Opened() {
			if cfg.Epoch == hub.Exclusive(0) {
				t.Error("a reader showed no epoch")
			}
		}
		close(hang)
	})
}

// H1: $Default is one group, however it is written.
func TestTheDefaultGroupIsOneHoweverItIsWritten(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		cfg := w.config("b")
		cfg.Group = "$default"
		w.start(cfg, w.note)
		after(time.Minute)
		w.wantCounts(1, 1)
	})
}
