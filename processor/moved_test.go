package processor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// P7: a checkpoint of the whole partition counts for what was handled since the operator's move
// only.
func TestAPartitionsCheckpointDoesNotUndoAnOperatorsMove(t *testing.T) {
	for _, end := range []string{"in the call", "in Close"} {
		t.Run(end, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				hold := make(chan struct{})
				d := &diary{w: w}
				d.process = func(ctx context.Context, b *processor.Batch) error {
					w.noteOnly(ctx, b)
					if b.Events[0].Sequence == 5 {
						<-hold
					}
					return b.Partition.Checkpoint(ctx)
				}
				d.close = func(ctx context.Context, p *processor.Partition, _ processor.Reason) error { return p.Checkpoint(ctx) }
				a := w.startHost(w.config("a"), func(string) processor.Worker { return d })
				w.feed(time.Second, "0", 5)
				w.wantSaved("0", 4)
				w.feed(time.Second, "0", 1)
				w.force("0", 1)
				after(time.Minute) // it is noticed while the call is under way
				if end == "in Close" {
					go func() { time.Sleep(time.Second); close(hold) }()
					a.stop()
					w.wantSaved("0", 1)
					return
				}
				close(hold)
				after(10 * time.Second)
				w.wantGot("0", 0, 1, 2, 3, 4, 5, 2, 3, 4, 5)
				w.wantSaved("0", 5)
			})
		})
	}
}

// P7: a mark is not taken for stored because the checkpoint that could not be right is higher.
func TestALostAnswerWhileABadCheckpointIsStoredLosesNoMark(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.force("0", 1000)
		w.hub.SendN("0", 5)
		lossy := newFaulty(w.store)
		lossy.set(lossy.deny, "save", 1)
		cfg := w.config("a")
		cfg.Store = lossy
		w.start(cfg, w.note)
		after(10 * time.Second)
		w.wantAll()
		w.wantSaved("0", 4)
	})
}

// storing is a handler that stores its marks itself, as a transaction does.
func (w *world) storing(ctx context.Context, b *processor.Batch) error {
	m, err := b.Mark()
	if err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	c, err := w.store.Save(ctx, m.Group, m.Lease, m.Checkpoint)
	if err != nil {
		return err
	}
	w.noteOnly(ctx, b)
	b.Recorded(c)
	return nil
}

// P7: what a handler has stored by itself is not written again.
func TestWhatTheHandlerHasStoredIsNotWrittenTwice(t *testing.T) {
	for _, checkpoints := range []processor.Checkpoints{{Auto: true}, {Auto: true, Every: time.Second}} {
		bubble(t, 1, func(w *world) {
			cfg, counted := w.faulty("a")
			cfg.Checkpoints = checkpoints
			a := w.start(cfg, w.storing)
			for range 50 {
				w.feed(200*time.Millisecond, "0", 1)
			}
			after(time.Second)
			a.stop()
			w.wantAll()
			w.wantSaved("0", 49)
			if n := counted.count("save"); n != 0 || len(w.errs) > 0 {
				t.Errorf("%d checkpoints were written again; errors %v", n, w.errs)
			}
		})
	}
}

// A call without events has a lease to guard what it does, and a checkpoint that stays where it is.
func TestTheMarkOfAnEmptyBatchIsTheStoredCheckpoint(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.CallWhenIdle = true
		idle := 0
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if len(b.Events) > 0 {
				return w.note(ctx, b)
			}
			m, err := b.Mark()
			if c := w.saved("0"); err != nil || m.Lease.Epoch != 1 || m.Checkpoint != c {
				t.Errorf("mark %+v, %v; stored is %+v", m, err, c)
			}
			idle++
			return nil
		})
		w.feed(5*time.Second, "0", 3)
		if idle == 0 {
			t.Error("no call without events")
		}
	})
}

// P7: who stores the mark by itself must not wait for its own transaction in Checkpoint.
func TestACheckpointWhileTheHandlerHasTheMarkIsAnErrorAtOnce(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error {
			m, err := b.Mark()
			if err != nil || m.Store != w.store {
				t.Errorf("mark %+v, %v", m, err)
			}
			for _, err := range []error{b.Checkpoint(ctx), b.CheckpointAt(ctx, b.Events[0]), b.Partition.Checkpoint(ctx)} {
				if err == nil || !strings.Contains(err.Error(), "InTx moves the checkpoint") {
					t.Errorf("a checkpoint gave %v", err)
				}
			}
			if b.Attempt == 1 {
				return errHandler
			}
			c, err := w.store.Save(ctx, m.Group, m.Lease, m.Checkpoint)
			if err != nil {
				return err
			}
			b.Recorded(c)
			return b.Checkpoint(ctx) // which is there already
		})
		w.feed(5*time.Second, "0", 3)
		w.wantSaved("0", 2)
	})
}

func TestWithLanesThereIsNoMarkAndTheErrorSaysWhatToDo(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Lanes = 2
		a := w.start(cfg, func(_ context.Context, b *processor.Batch) error {
			_, err := b.Mark()
			return err
		})
		w.feed(time.Second, "0", 1)
		a.stop()
		if len(w.errs) == 0 || !strings.Contains(w.errs[0].Error(), "leave Lanes at 0") {
			t.Errorf("told %v", w.errs)
		}
	})
}
