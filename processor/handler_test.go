package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

var errHandler = errors.New("no")

// P4
func TestAFailedBatchComesAgainWithItsAttemptAndHoldsUpItsPartitionOnly(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg := w.config("a")
		cfg.MaxBatch = 2
		var calls []string
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Partition.ID() == "0" {
				calls = append(calls, fmt.Sprint(b.Events[0].Sequence, "#", b.Attempt))
				if b.Events[0].Sequence == 2 && b.Attempt < 4 {
					return errHandler
				}
			}
			return w.note(ctx, b)
		})
		w.feedAll(50*time.Millisecond, 6)
		w.wantGot("1", upTo(6)...)
		w.wantGot("0", 0, 1)
		if s := w.status(a, "0"); s.State != processor.Retrying || !errors.Is(s.Err, errHandler) || s.Attempt != 1 || s.Done != 1 {
			t.Errorf("the status says %+v", s)
		}
		w.wantSaved("0", 1)
		after(5 * time.Second)
		testkit.Slices(t, calls, []string{"0#1", "2#1", "2#2", "2#3", "2#4", "4#1"}, "calls")
		w.wantAll()
		if s := w.status(a, "0"); s.State != processor.Running || s.Err != nil || s.Attempt != 1 {
			t.Errorf("the status says %+v", s)
		}
		w.wantReported(errHandler)
	})
}

// P4
func TestContinueGoesOnPastAFailedBatch(t *testing.T) {
	for _, lanes := range []int{0, 3} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.MaxBatch, cfg.Continue, cfg.Lanes = 1, true, lanes
			w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				if b.Events[0].Sequence == 2 {
					return errHandler
				}
				return w.note(ctx, b)
			})
			w.feed(time.Second, "0", 5)
			w.wantInAnyOrder("0", 0, 1, 3, 4)
			w.wantReported(errHandler)
			w.wantSaved("0", 4)
		})
	}
}

func TestAPanicOfAHandlerIsAnErrorWithItsStack(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error {
			if b.Attempt == 1 {
				panic("oh")
			}
			return w.note(ctx, b)
		})
		w.feed(time.Second, "0", 5)
		w.wantAll()
		var p *processor.PanicError
		if len(w.errs) != 1 || !errors.As(w.errs[0], &p) || p.Value != "oh" || len(p.Stack) == 0 ||
			!strings.HasPrefix(p.Error(), "panicked at processor/handler_test.go:") {
			t.Errorf("OnError was told %v", w.errs)
		}
	})
}

// P9
func TestCallsOfOnePartitionNeverOverlapAndThoseOfOthersDo(t *testing.T) {
	bubble(t, 3, func(w *world) {
		cfg := w.config("a")
		cfg.MaxBatch = 1
		inside, most := map[string]int{}, 0
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			w.mu.Lock()
			inside[b.Partition.ID()]++
			if inside[b.Partition.ID()] > 1 {
				t.Error("two calls at once")
			}
			sum := 0
			for _, n := range inside {
				sum += n
			}
			most = max(most, sum)
			w.mu.Unlock()
			time.Sleep(time.Second)
			w.mu.Lock()
			inside[b.Partition.ID()]--
			w.mu.Unlock()
			return w.note(ctx, b)
		})
		w.feedAll(10*time.Second, 5)
		w.wantAll()
		testkit.Equal(t, most, 3, "at most … calls at once")
	})
}

// P10
func TestBatchesAreGatheredByCountAndTime(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.MinBatch, cfg.MaxBatch, cfg.MaxWait, cfg.CallWhenIdle = 3, 4, 2*time.Second, true
		var calls []string
		begin := time.Now()
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			calls = append(calls, fmt.Sprint(len(b.Events), "@", time.Since(begin)))
			return w.note(ctx, b)
		})
		after(time.Second)
		w.hub.SendN("0", 2) // waits for a third until 3 s
		after(3 * time.Second)
		w.hub.SendN("0", 9) // 4, 4, and one that waits from 4 s to 6 s
		after(5 * time.Second)
		testkit.Slices(t, calls, []string{"2@3s", "4@4s", "4@4s", "1@6s", "0@8s"}, "calls")
		w.wantSaved("0", 10)
	})
}

// P7, F2: what was interrupted is not done, whatever it returns.
func TestACallThatEndedAfterItsTimeIsNotDone(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.HandlerTimeout = time.Second
		cfg.Checkpoints.Auto = true
		var cause error
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Attempt == 1 {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return nil
			}
			if ctx.Err() != nil {
				t.Error("the next call's context has ended, too")
			}
			return w.noteOnly(ctx, b)
		})
		w.feed(500*time.Millisecond, "0", 3)
		w.wantSaved("0", -1)
		after(5 * time.Second)
		testkit.ErrorIs(t, cause, processor.ErrHandlerTimeout, "the context ended with")
		w.wantReported(processor.ErrHandlerTimeout)
		w.wantAll()
		w.wantSaved("0", 2)
	})
}

func TestACallThatIgnoresTheEndOfItsContextForALeaseLosesItsPartition(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg := w.config("a")
		cfg.HandlerTimeout = time.Second
		hang := make(chan struct{})
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Partition.ID() == "0" {
				<-hang
				return nil
			}
			return w.note(ctx, b)
		})
		w.feed(5*time.Second, "0", 1)
		w.start(w.config("b"), w.note)
		after(3 * time.Minute)
		w.wantGot("0", 0)
		testkit.Equal(t, w.lease("0").Owner, "b", "owners %s", w.owners())
		w.wantReported(processor.ErrStalled)
		w.feed(time.Second, "1", 1)
		w.wantGot("1", 0)
		close(hang)
		after(time.Minute)
		w.wantCounts(1, 1)
	})
}

// P11
func TestAStopLetsCallsEndWithinItsTimeAndCountsThem(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: time.Hour}
		d := &diary{w: w, process: func(ctx context.Context, b *processor.Batch) error {
			time.Sleep(10 * time.Second)
			if ctx.Err() != nil {
				t.Error("the context ended early")
			}
			return w.noteOnly(ctx, b)
		}}
		a := w.startHost(cfg, func(string) processor.Worker { return d })
		w.feed(time.Second, "0", 3)
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		w.wantAll()
		w.wantSaved("0", 2)
		testkit.Slices(t, d.list(), []string{"open 0", "close 0 shutdown"}, "the worker saw")
	})
}

// P11
func TestAStopDoesNotWaitForEverForACallThatIgnoresIt(t *testing.T) {
	bubble(t, 2, func(w *world) {
		hang := make(chan struct{})
		var cause error
		a := w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-hang
			return nil
		})
		w.feed(time.Second, "0", 3)
		begin := time.Now()
		a.stopLeaving("partition 0: the handler has not returned")
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		after(time.Millisecond)
		testkit.ErrorIs(t, cause, processor.ErrShutdown, "the context ended with")
		if w.lease("1").Owner != "" || w.lease("0").Owner == "" {
			t.Errorf("owners %q: what has ended is released, what has not is not", w.owners())
		}
		close(hang)
		after(time.Second)
		w.wantSaved("0", -1)
	})
}

// P11: what was finished while the lease was ours counts, although the call's context has ended.
func TestACallThatEndsInGoodOrderAfterItsContextStillCounts(t *testing.T) {
	for _, auto := range []bool{true, false} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Checkpoints.Auto = auto
			a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				<-ctx.Done()
				w.noteOnly(ctx, b)
				if auto {
					return nil
				}
				return b.Checkpoint(ctx)
			})
			w.feed(time.Second, "0", 3)
			a.stop()
			w.wantAll()
			w.wantSaved("0", 2)
			w.wantNoErrors()
		})
	}
}
