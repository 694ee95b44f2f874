package processor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// P9 with lanes: keys run beside each other, and each in order.
func TestLanesKeepTheOrderOfEachKeyAndARetryHoldsUpItsLaneOnly(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Lanes, cfg.MaxBatch = 8, 5
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: time.Second}
		byKey := map[string][]int64{}
		release := false
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, ev := range b.Events {
				if ev.Key == "bad" && !release {
					return errHandler
				}
			}
			for _, ev := range b.Events {
				byKey[ev.Key] = append(byKey[ev.Key], ev.Sequence)
			}
			return nil
		})
		keys := []string{"bad"}
		for i := range 40 {
			keys = append(keys, fmt.Sprint("key", i))
		}
		w.feed(5*time.Second, "0", 41*20, keys...)
		w.wantSaved("0", -1) // event 0 is bad: everything waits behind it
		w.mu.Lock()
		done := 0
		for key, seqs := range byKey {
			done += len(seqs)
			if !slices.IsSorted(seqs) {
				t.Errorf("out of order: %v", seqs)
			}
			if len(seqs) != 20 || key == "bad" { // a lane stands still whole or not at all
				t.Errorf("%d events of %s were handled beside the bad key", len(seqs), key)
			}
		}
		release = true
		w.mu.Unlock()
		// How many keys share the bad one's lane is chance: of eight lanes hardly ever half.
		if done < 41*20/2 || done == 41*20 {
			t.Errorf("%d of %d were handled beside the bad key", done, 41*20)
		}
		if s := w.status(a, "0"); s.State != processor.Retrying || s.Done != -1 || s.Lag != 41*20 {
			t.Errorf("the status says %+v", s)
		}
		after(40 * time.Second)
		for key, seqs := range byKey {
			if len(seqs) != 20 || !slices.IsSorted(seqs) {
				t.Errorf("%s: %v", key, seqs)
			}
		}
		w.wantSaved("0", 41*20-1)
		if c := w.saved("0"); c.Offset != "o819" {
			t.Errorf("stored %+v", c)
		}
	})
}

func TestNoMoreIsReadThanTheWindowOfTheLanesHolds(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Lanes, cfg.MaxBatch, cfg.Prefetch = 2, 10, 10
		cfg.Checkpoints.Auto = true
		hold := make(chan struct{})
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Events[0].Sequence == 0 {
				<-hold
			}
			return w.noteOnly(ctx, b)
		})
		w.feed(time.Second, "0", 2000)
		if n := len(w.got("0")); n < 40 || n > 120 {
			t.Errorf("%d were handled past the one that hangs", n)
		}
		w.wantSaved("0", -1)
		close(hold)
		after(time.Second)
		w.wantInAnyOrder("0", upTo(2000)...)
		w.wantSaved("0", 1999)
	})
}

// A checkpoint in one lane says nothing of the others.
func TestTheCheckpointOfLanesIsBeforeTheLowestEventThatIsNotDone(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Lanes = 2 // without keys: even and odd
		gate := make(chan struct{})
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Events[0].Sequence%2 == 0 {
				if err := b.CheckpointAt(ctx, b.Events[1]); err != nil { // 0 and 2
					return err
				}
				<-gate
			}
			return b.Checkpoint(ctx)
		})
		w.feed(time.Second, "0", 10)
		w.wantSaved("0", 3) // 1, 3, ... are done, 0 and 2 are, 4 is not
		close(gate)
		after(time.Second)
		w.wantSaved("0", 9)
	})
}

// P2 with lanes.
func TestAHandoffWithLanesLosesNothing(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg := w.config("a")
		cfg.Lanes = 4
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: time.Hour}
		handle := func(ctx context.Context, b *processor.Batch) error {
			time.Sleep(200 * time.Millisecond)
			return w.noteOnly(ctx, b)
		}
		a := w.start(cfg, handle)
		after(time.Second)
		cfg.ID = "b"
		w.hub.SendAll(50)
		b := w.start(cfg, handle)
		for range 20 {
			w.feedAll(time.Second, 5)
		}
		after(time.Minute)
		w.wantCounts(1, 1)
		a.stop()
		b.stop()
		seen := map[int64]int{}
		for _, id := range []string{"0", "1"} {
			for _, seq := range w.got(id) {
				seen[seq]++
			}
		}
		for seq := range int64(150) {
			if seen[seq] < 2 {
				t.Errorf("%d was handled %d times", seq, seen[seq])
			}
		}
	})
}

// P4, P7: what is gone past after an error takes nothing with it that nobody has marked.
func TestAFailedBatchOfALaneDoesNotMarkThoseBeforeIt(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.MaxBatch, cfg.Continue, cfg.Lanes = 1, true, 2
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			switch b.Events[0].Sequence {
			case 2:
				return errHandler
			case 4:
				return w.note(ctx, b)
			}
			return w.noteOnly(ctx, b)
		})
		w.feed(time.Second, "0", 4, "one key")
		w.wantSaved("0", -1)
		w.feed(time.Second, "0", 1, "one key")
		w.wantSaved("0", 4)
		w.wantGot("0", 0, 1, 3, 4)
	})
}

// P2, P11: lanes that are behind others catch up with them before the partition is given up.
func TestLanesThatAreBehindCatchUpBeforeThePartitionIsGivenUp(t *testing.T) {
	for _, stop := range []bool{false, true} {
		bubble(t, 2, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.MaxBatch = 2, 1
			cfg.Checkpoints.Auto = true
			handle := func(ctx context.Context, b *processor.Batch) error {
				if b.Events[0].Sequence%2 == 0 {
					time.Sleep(time.Second)
				}
				return w.noteOnly(ctx, b)
			}
			a := w.start(cfg, handle)
			after(time.Second)
			w.feedAll(2500*time.Millisecond, 10) // 0 and 2 are done, and all odd ones
			if stop {
				a.stop()
				w.wantSaved("0", 9)
			}
			cfg.ID = "b"
			w.start(cfg, handle)
			after(time.Minute)
			for _, id := range []string{"0", "1"} {
				w.wantInAnyOrder(id, upTo(10)...)
			}
			if !stop {
				a.stop()
			}
		})
	}
}

// What is ahead of all that was begun is left to the next owner, and so is all where a batch waits
// to come again.
func TestLanesThatStopBeginNothingNew(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Lanes, cfg.MaxBatch = 2, 1
		cfg.Checkpoints.Auto = true
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			time.Sleep(time.Second)
			return w.noteOnly(ctx, b)
		})
		w.feed(2500*time.Millisecond, "0", 100)
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("took %v", took)
		}
		w.wantSaved("0", 5)
	})
}
