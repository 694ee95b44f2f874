package processor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P7
func TestSuccessWithoutACheckpointMovesNothing(t *testing.T) {
	bubble(t, 1, func(w *world) {
		a := w.start(w.config("a"), w.noteOnly)
		w.feed(time.Minute, "0", 5)
		a.stop()
		w.wantGot("0", upTo(5)...)
		w.wantSaved("0", -1)
	})
}

// P7
func TestACheckpointMayNameAnEarlierEventOfTheBatch(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error {
			if err := b.CheckpointAt(ctx, b.Events[3]); err != nil {
				return err
			}
			other := b.Events[3]
			other.Sequence = 77
			if b.CheckpointAt(ctx, other) == nil {
				t.Error("an event of no batch was taken")
			}
			return nil
		})
		w.feed(time.Second, "0", 10)
		w.wantSaved("0", 3)
		testkit.Equal(t, w.saved("0").Offset, "o3", "stored %+v", w.saved("0"))
	})
}

// P7
func TestMarkedCheckpointsAreWrittenByTimeByCountWhenIdleAndAtTheEnd(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg, cut := w.faulty("a")
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: 5 * time.Second, Events: 100}
		cfg.MaxBatch = 1
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			time.Sleep(100 * time.Millisecond)
			return w.noteOnly(ctx, b)
		})
		after(time.Second)
		w.feed(4950*time.Millisecond, "0", 1000)
		w.wantSaved("0", -1)
		after(200 * time.Millisecond)
		if got := w.saved("0").Sequence; got < 45 || got > 51 { // by time
			t.Errorf("after 5 s: %d", got)
		}
		after(95 * time.Second)
		if n := cut.count("save"); n < 19 || n > 22 {
			t.Errorf("%d writes in 100 s", n)
		}
		after(2 * time.Second)
		w.wantSaved("0", 999) // idle
		w.feed(150*time.Millisecond, "0", 1)
		w.wantSaved("0", 999)
		a.stop()
		w.wantSaved("0", 1000) // the end
	})
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Events: 10}
		cfg.MaxBatch = 1
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			time.Sleep(100 * time.Millisecond)
			return w.noteOnly(ctx, b)
		})
		w.feed(1050*time.Millisecond, "0", 100)
		w.wantSaved("0", 9) // by count
		after(time.Second)
		w.wantSaved("0", 19)
	})
}

// P7: the operator's word counts.
func TestAnOperatorsMoveRestartsThePartitionFromThere(t *testing.T) {
	for name, checkpoints := range map[string]processor.Checkpoints{
		"at once": {}, "marked": {Every: 10 * time.Second}, "auto": {Auto: true},
	} {
		for _, lanes := range []int{0, 4} {
			t.Run(name, func(t *testing.T) {
				bubble(t, 1, func(w *world) {
					cfg := w.config("a")
					cfg.Checkpoints, cfg.Lanes = checkpoints, lanes
					w.start(cfg, w.note)
					w.feed(15*time.Second, "0", 10)
					w.wantSaved("0", 9)
					w.force("0", 5)
					w.feed(15*time.Second, "0", 1)
					w.wantInAnyOrder("0", 0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10)
					w.wantSaved("0", 10)
					w.wantReported(processor.ErrMoved)
				})
			})
		}
	}
}

// P7
func TestAnOperatorsMoveIsNoticedWhileThePartitionIsIdle(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), w.note)
		w.feed(time.Second, "0", 4)
		w.force("0", 1)
		after(time.Minute)
		w.wantGot("0", 0, 1, 2, 3, 2, 3)
		after(5 * time.Minute)
		w.wantGot("0", 0, 1, 2, 3, 2, 3)
	})
}

// P7: a batch that waits to come again is dropped when the operator moves the checkpoint past it.
func TestAnOperatorsMoveEndsTheRetriesOfABatch(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.MaxBatch, cfg.Lanes = 1, lanes
			cfg.Backoff = processor.Backoff{First: time.Hour, Max: time.Hour}
			w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				if b.Events[0].Sequence == 1 {
					return errHandler
				}
				return w.note(ctx, b)
			})
			w.feed(time.Minute, "0", 4, "one key")
			w.wantGot("0", 0)
			w.force("0", 1)
			after(2 * time.Minute)
			w.wantGot("0", 0, 2, 3)
		})
	}
}

// P7
func TestCloseMayCheckpointWhatWasHandled(t *testing.T) {
	bubble(t, 1, func(w *world) {
		d := &diary{w: w, process: w.noteOnly}
		d.close = func(ctx context.Context, p *processor.Partition, _ processor.Reason) error { return p.Checkpoint(ctx) }
		a := w.startHost(w.config("a"), func(string) processor.Worker { return d })
		w.feed(time.Second, "0", 4)
		w.wantSaved("0", -1)
		a.stop()
		w.wantSaved("0", 3)
	})
}

// P7: Close may try after the lease was lost; whether another has it decides.
func TestCloseAfterALostLeaseCheckpointsOnlyWhileNobodyElseOwns(t *testing.T) {
	for _, taken := range []bool{false, true} {
		bubble(t, 1, func(w *world) {
			cfg, cut := w.faulty("a")
			var err error
			d := &diary{w: w, process: w.noteOnly}
			d.close = func(ctx context.Context, p *processor.Partition, why processor.Reason) error {
				if why == processor.LeaseLost {
					cut.setDown(false)
					err = p.Checkpoint(ctx)
				}
				return nil
			}
			w.startHost(cfg, func(string) processor.Worker { return d })
			w.feed(time.Second, "0", 4)
			cut.setDown(true)
			if taken {
				l := w.lease("0")
				l.Owner, l.Epoch = "b", 2
				testkit.Must(t, testkit.Err(w.store.Claim(context.Background(), group, []processor.Lease{l})))
			}
			after(35 * time.Second)
			if taken != errors.Is(err, processor.ErrFenced) || !taken && err != nil {
				t.Errorf("the checkpoint gave %v", err)
			}
			w.wantSaved("0", map[bool]int64{false: 3, true: -1}[taken])
		})
	}
}

// What a store does that keeps the checkpoint in the handler's own transaction.
func TestAHandlerMayStoreTheMarkItself(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.MaxBatch = 2
		loseAt := int64(3)
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			m, err := b.Mark()
			if err != nil {
				return err
			}
			c, err := w.store.Save(ctx, m.Group, m.Lease, m.Checkpoint)
			if err != nil {
				return err
			}
			w.noteOnly(ctx, b)
			if c.Sequence == loseAt {
				loseAt = -1
				return errDown // committed, but nobody knows
			}
			b.Recorded(c)
			return nil
		})
		w.feed(10*time.Second, "0", 8)
		w.wantAll()
		w.wantSaved("0", 7)
		w.force("0", 5)
		w.feed(10*time.Second, "0", 1)
		w.wantGot("0", 0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 8)
	})
}

// P7: what a call returns after the lease was lost counts for nothing, also not in Close.
func TestACallThatEndedAfterTheLeaseWasLostIsNotCheckpointedByClose(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg, cut := w.faulty("a")
		cfg.MaxBatch = 1
		d := &diary{w: w}
		d.process = func(ctx context.Context, b *processor.Batch) error {
			if b.Events[0].Sequence == 2 && cut.count("down") == 0 {
				cut.set(cut.calls, "down", 1)
				cut.setDown(true)
				<-ctx.Done()
			}
			return w.noteOnly(ctx, b)
		}
		d.close = func(ctx context.Context, p *processor.Partition, _ processor.Reason) error {
			cut.setDown(false)
			testkit.Check(t, p.Checkpoint(ctx), "checkpoint in Close")
			w.wantSaved("0", 1)
			d.close = nil
			return nil
		}
		w.startHost(cfg, func(string) processor.Worker { return d })
		w.feed(time.Minute, "0", 3)
		w.wantGot("0", 0, 1, 2, 2)
	})
}
