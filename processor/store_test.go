package processor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// diary notes what happens to a worker, in order.
type diary struct {
	w       *world
	mu      sync.Mutex
	entries []string
	open    func() error
	process func(ctx context.Context, b *processor.Batch) error
	close   func(ctx context.Context, p *processor.Partition, why processor.Reason) error
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, s)
}

func (d *diary) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

func (d *diary) Open(_ context.Context, p *processor.Partition) error {
	d.note("open " + p.ID())
	if d.open != nil {
		return d.open()
	}
	return nil
}

func (d *diary) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	if d.process != nil {
		return d.process(ctx, b)
	}
	return d.w.note(ctx, b)
}

func (d *diary) ProcessError(_ context.Context, p *processor.Partition, err error) {
	d.note("error " + p.ID())
}

func (d *diary) Close(ctx context.Context, p *processor.Partition, why processor.Reason) error {
	if n := d.w.hub.Readers(p.ID()); n != 0 {
		d.note("still reading")
	}
	d.note("close " + p.ID() + " " + why.String())
	if d.close != nil {
		return d.close(ctx, p, why)
	}
	return nil
}

// P3
func TestThePartitionsOfADeadInstanceAreTakenWhenItsLeasesHaveEnded(t *testing.T) {
	bubble(t, 4, func(w *world) {
		cfg, cut := w.faulty("a")
		w.start(cfg, w.noteOnly)
		after(time.Second)
		w.feed(time.Second, "1", 5)
		cut.setDown(true) // for the others that is the same as dead
		w.start(w.config("b"), w.note)
		after(20 * time.Second)
		testkit.Equal(t, w.owners(), "a:0,1,2,3", "taken before the leases had ended")
		after(15 * time.Second)
		testkit.Equal(t, w.owners(), "b:0,1,2,3", "owners")
		w.wantGot("1", 0, 1, 2, 3, 4, 0, 1, 2, 3, 4) // a made no checkpoint
		testkit.Equal(t, w.lease("1").Epoch, 2, "epoch")
	})
}

// P3: while the store is down work goes on as long as the leases are proven.
func TestWithTheStoreDownWorkGoesOnWhileLeasesAreProvenAndResumesByItself(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg, cut := w.faulty("a")
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: time.Second}
		var cause error
		hold := make(chan struct{})
		d := &diary{w: w}
		d.process = func(ctx context.Context, b *processor.Batch) error {
			if b.Events[0].Sequence == 3 && cause == nil {
				<-ctx.Done()
				cause = context.Cause(ctx)
				<-hold
				return nil
			}
			return w.noteOnly(ctx, b)
		}
		w.startHost(cfg, func(string) processor.Worker { return d })
		w.feed(time.Second, "0", 1)
		cut.setDown(true)
		w.feed(10*time.Second, "0", 2)
		w.wantGot("0", 0, 1, 2)
		w.feed(30*time.Second, "0", 1)
		testkit.MustErrorIs(t, cause, processor.ErrLeaseLost, "the call's context ended with")
		testkit.Equal(t, w.hub.Readers("0"), 0, "the reader is open although the lease was lost")
		if slices.Contains(d.list(), "close 0 lease lost") {
			t.Error("closed before the last call returned")
		}
		close(hold)
		after(time.Second)
		if got := d.list(); got[len(got)-1] != "close 0 lease lost" {
			t.Errorf("the worker saw %v", got)
		}
		cut.setDown(false)
		after(15 * time.Second)
		w.wantGot("0", 0, 1, 2, 1, 2, 3) // 3 did not count, as the lease was lost; 1 and 2 were not stored
		w.wantSaved("0", 3)
		testkit.Equal(t, w.lease("0").Epoch, 2, "epoch")
	})
}

// P1: never assume that a claim without an answer was made, nor that it was not.
func TestALostAnswerToAClaimIsFoundOutByReadingAgain(t *testing.T) {
	bubble(t, 3, func(w *world) {
		cut := newFaulty(w.store)
		cut.lose["claim"] = 1
		cfg := w.config("a")
		cfg.Store = cut
		w.hub.SendN("0", 3)
		w.start(cfg, w.note)
		after(5 * time.Second)
		w.wantAll()
		testkit.Equal(t, w.lease("0").Epoch, 2, "epoch … a lease is taken up with a raised epoch")
		cut.set(cut.lose, "claim", 1) // of a renewal
		after(time.Minute)
		w.feed(time.Second, "0", 3)
		w.wantAll()
		testkit.Equal(t, w.lease("0").Epoch, 2, "epoch … the lease was lost with the answer to a renewal")
	})
}

// P7
func TestALostAnswerToASaveIsFoundOutByReadingAgain(t *testing.T) {
	for _, op := range []string{"lose", "deny"} {
		bubble(t, 1, func(w *world) {
			cfg, cut := w.faulty("a")
			w.start(cfg, w.note)
			after(time.Second)
			if op == "lose" {
				cut.set(cut.lose, "save", 1)
			} else {
				cut.set(cut.deny, "save", 2)
			}
			w.feed(time.Second, "0", 3)
			w.feed(time.Second, "0", 2)
			w.wantAll()
			w.wantSaved("0", 4)
			if w.reported(processor.ErrMoved) {
				t.Error("taken for an operator's move")
			}
		})
	}
}

// The official Go processor keeps such a partition for ever without reading it.
func TestAFailureToReadTheCheckpointStrandsNoPartition(t *testing.T) {
	bubble(t, 4, func(w *world) {
		cut := newFaulty(w.store)
		cut.deny["begin"] = 6
		cfg := w.config("a")
		cfg.Store = cut
		w.hub.SendAll(3)
		a := w.start(cfg, w.note)
		after(50 * time.Millisecond)
		if s := w.status(a, "2"); s.State != processor.Starting || !errors.Is(s.Err, errDown) {
			t.Errorf("the status says %+v", s)
		}
		after(5 * time.Second)
		w.wantAll()
		if s := w.status(a, "2"); s.State != processor.Running || s.Err != nil {
			t.Errorf("the status says %+v", s)
		}
	})
}

// P1
func TestRenewalsAreOneCallOfTheStore(t *testing.T) {
	bubble(t, 50, func(w *world) {
		cfg, cut := w.faulty("a")
		w.start(cfg, w.note)
		after(time.Second)
		cut.set(cut.calls, "claim", 0)
		after(time.Minute)
		if n := cut.count("claim"); w.store.keeps && n != 0 || !w.store.keeps && (n < 6 || n > 7) {
			t.Errorf("%d calls in a minute", n)
		}
	})
}

func TestALeaseThatWasTakenIsLost(t *testing.T) {
	bubble(t, 1, func(w *world) {
		var cause error
		w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			testkit.ErrorIs(t, b.Checkpoint(ctx), processor.ErrLeaseLost, "a checkpoint")
			return nil
		})
		w.feed(time.Second, "0", 1)
		l := w.lease("0")
		l.Owner, l.Epoch = "someone", l.Epoch+1
		if got, err := w.store.Claim(context.Background(), group, []processor.Lease{l}); err != nil || len(got) != 1 {
			t.Fatal(err)
		}
		after(time.Second)
		testkit.ErrorIs(t, cause, processor.ErrLeaseLost, "the context ended with")
		w.wantSaved("0", -1)
	})
}

// P11: also when the last answer was cut off.
func TestAStopReleasesWhatWasWrittenWithoutAnAnswer(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		bubble(t, partitions, func(w *world) {
			cfg, cut := w.faulty("a")
			a := w.start(cfg, w.note)
			after(time.Second)
			cut.set(cut.lose, "claim", 1)
			w.hub.Grow(1)
			if partitions == 3 {
				after(10 * time.Second) // a renewal, not answered
			}
			a.stop()
			w.wantNothingLeft()
		})
	}
}

// P11: leases that cannot be released run out by themselves, and are not insisted on for longer.
func TestAStopWithoutAStoreTakesNoLongerThanALease(t *testing.T) {
	bubble(t, 3, func(w *world) {
		cfg, cut := w.faulty("a")
		cfg.Stop = 10 * time.Minute
		a := w.start(cfg, w.note)
		after(time.Second)
		cut.setDown(true)
		before := time.Now()
		a.stop()
		took := time.Since(before)
		testkit.That(t, took >= 30*time.Second && took < time.Minute, "it took %v", took) // a lease is 30 s, an attempt some more
		cut.setDown(false)
		w.start(w.config("b"), w.note)
		after(time.Minute)
		w.wantAll()
	})
}
