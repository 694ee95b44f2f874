package processor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// waiter is a handler that does the first two events of each batch, and then waits for what does
// not come.
type waiter struct {
	w *world
	// waits says whether it waits with a batch; nil: with all.
	waits func(b *processor.Batch) bool
	// began and left are when its first call and the first end of waiting were, by partition;
	// guarded by w.mu.
	began, left map[string]time.Time
}

func (w *world) waiter() *waiter {
	return &waiter{w: w, began: map[string]time.Time{}, left: map[string]time.Time{}}
}

func (h *waiter) handle(ctx context.Context, b *processor.Batch) error {
	h.note(h.began, b)
	if len(b.Events) > 2 {
		if err := b.CheckpointAt(ctx, b.Events[1]); err != nil {
			return err
		}
	}
	if h.waits != nil && !h.waits(b) {
		return h.w.note(ctx, b)
	}
	select {
	case <-b.Leaving():
		h.note(h.left, b)
		return fmt.Errorf("wait for something: %w", processor.ErrUndone)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *waiter) note(when map[string]time.Time, b *processor.Batch) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if id := b.Partition.ID(); when[id].IsZero() {
		when[id] = time.Now()
	}
}

// wantCalm wants that nobody was told of anything.
func (w *world) wantCalm() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.errs) > 0 {
		w.t.Errorf("OnError was told of %v", w.errs)
	}
	for _, s := range w.states {
		if _, state, _ := cut(s); state == string(processor.Retrying) || state == string(processor.Stalled) {
			w.t.Errorf("the states were %v", w.states)
		}
	}
}

// cut divides what onState notes.
func cut(s string) (partition, state string, ok bool) {
	_, err := fmt.Sscan(s, &partition, &state)
	return partition, state, err == nil
}

// P2, P11: a call that waits hears at once that its partition is to move, and gives it back: the
// next owner begins at once, exactly behind what was checkpointed.
func TestACallThatWaitsGivesItsPartitionBackAtOnce(t *testing.T) {
	for _, checkpoints := range []processor.Checkpoints{{}, {Every: time.Hour}} {
		for lanes, behind := range map[int]int64{0: 1, 2: 3} { // of two lanes each has done two
			t.Run(fmt.Sprint(lanes, " lanes, ", checkpoints), func(t *testing.T) {
				bubble(t, 2, func(w *world) {
					cfg := w.config("a")
					cfg.Lanes, cfg.HandlerTimeout, cfg.Checkpoints, cfg.Handoff = lanes, -1, checkpoints, 10*time.Minute
					ours, theirs := w.waiter(), w.waiter()
					theirs.waits = func(*processor.Batch) bool { return false }
					a := w.start(cfg, ours.handle)
					after(time.Second)
					w.feedAll(time.Hour, 10)
					if len(ours.left) > 0 || w.owners() != "a:0,1" {
						t.Fatalf("left at %v; owners %s", ours.left, w.owners())
					}
					cfg.ID = "b"
					b := w.start(cfg, theirs.handle)
					after(time.Minute)
					if len(theirs.began) != 1 || len(ours.left) != 1 {
						t.Fatalf("owners %s; a left %v, b began %v", w.owners(), ours.left, theirs.began)
					}
					for id, began := range theirs.began {
						if took := began.Sub(ours.left[id]); took < 0 || took > 2*time.Second {
							t.Errorf("partition %s moved within %v", id, took)
						}
						w.wantInAnyOrder(id, upTo(10)[behind+1:]...)
					}
					begin := time.Now()
					a.stop()
					if took := time.Since(begin); took > 2*time.Second {
						t.Errorf("the stop took %v", took)
					}
					after(time.Minute)
					for _, id := range []string{"0", "1"} {
						if got := w.got(id); len(got) != int(9-behind) {
							t.Errorf("partition %s: b handled %v", id, got)
						}
					}
					b.stop()
					w.wantSaved("0", 9)
					w.wantSaved("1", 9)
					w.wantCalm()
				})
			})
		}
	}
}

// P7: a call that waits hears of an operator's move, and the partition starts again from there.
func TestACallThatWaitsHearsOfAnOperatorsMove(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.HandlerTimeout = lanes, -1
			h := w.waiter()
			h.waits = func(b *processor.Batch) bool { return b.Events[0].Sequence < 8 }
			w.start(cfg, h.handle)
			w.feed(time.Hour, "0", 10)
			w.force("0", 7)
			after(time.Minute)
			w.wantInAnyOrder("0", 8, 9)
			w.wantSaved("0", 9)
			w.wantReported(processor.ErrMoved)
			testkit.Equal(t, len(w.errs), 1, "%d lanes: OnError was told of %v", lanes, w.errs)
		})
	}
}

// P7: a call that has taken hours finds an operator's move when it checkpoints, and hears of it in
// both ways.
func TestALongCallFindsAnOperatorsMoveWhenItCheckpoints(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.HandlerTimeout = lanes, -1
			again := 0
			w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				if b.Events[0].Sequence != 0 {
					return w.note(ctx, b)
				}
				if again++; again > 1 {
					return w.note(ctx, b)
				}
				time.Sleep(5 * time.Hour)
				w.force("0", 1)
				err := b.CheckpointAt(ctx, b.Events[2])
				testkit.ErrorIs(t, err, processor.ErrMoved, "%d lanes: the checkpoint answered", lanes)
				select {
				case <-b.Leaving():
				default:
					t.Errorf("%d lanes: nothing is said of leaving", lanes)
				}
				return err
			})
			w.feed(4*time.Hour, "0", 10)
			w.wantCalm()
			after(2 * time.Hour)
			got := w.got("0")
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, upTo(10)[2-lanes/2:]) { // a lane had done 1 before
				t.Errorf("%d lanes: handled %v", lanes, got)
			}
			w.wantSaved("0", 9)
			w.wantReported(processor.ErrMoved)
		})
	}
}

// What a call waits with may be gone: then it hears of that, too.
func TestACallThatWaitsHearsOfAHubThatWasMadeAnew(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.HandlerTimeout = lanes, -1
			h := w.waiter()
			h.waits = func(b *processor.Batch) bool { return len(b.Events) > 1 }
			w.start(cfg, h.handle)
			after(time.Second)
			w.feed(time.Hour, "0", 10)
			w.hub.Recreate()
			w.feed(time.Minute, "0", 1)
			w.wantGot("0", 0) // the new one
		})
	}
}

// P1, P4: however long a call waits, its lease is renewed and the events behind it are no stall;
// nobody takes the partition.
func TestACallMayTakeHours(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.HandlerTimeout, cfg.MaxBatch, cfg.Prefetch = lanes, -1, 10, 10
			release := make(chan struct{})
			a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				select {
				case <-release:
					return w.note(ctx, b)
				case <-b.Leaving():
					t.Errorf("%d lanes: leaving", lanes)
				case <-ctx.Done():
					t.Errorf("%d lanes: %v", lanes, context.Cause(ctx))
				}
				return processor.ErrUndone
			})
			w.feed(time.Minute, "0", 5)
			cfg.ID = "b"
			w.start(cfg, w.note)
			for range 5 {
				w.hub.SendN("0", 100) // more than the window of lanes
				after(time.Hour)
				if l, s := w.lease("0"), w.status(a, "0"); l.Owner != "a" || l.Epoch != 1 || s.State != processor.Running || s.Attempt != 1 {
					t.Fatalf("%d lanes: the lease is %+v, the status %+v", lanes, l, s)
				}
			}
			w.wantCalm()
			close(release)
			after(time.Minute)
			w.wantSaved("0", 504)
			w.wantCalm()
		})
	}
}

// calls notes the attempt number and the time of each call.
type calls struct {
	attempts []int
	times    []time.Time
}

func (c *calls) note(b *processor.Batch) int {
	c.attempts, c.times = append(c.attempts, b.Attempt), append(c.times, time.Now())
	return len(c.attempts)
}

// P4: a batch that is given back comes again while the partition stays, soon each time, and is told
// to nobody.
func TestABatchThatIsGivenBackComesAgainAndIsNoFailure(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		for _, goOn := range []bool{false, true} { // past failures
			bubble(t, 1, func(w *world) {
				cfg := w.config("a")
				cfg.Lanes, cfg.Continue = lanes, goOn
				cfg.Backoff = processor.Backoff{First: time.Second, Max: time.Hour}
				var c calls
				a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
					if c.note(b) < 20 {
						return processor.ErrUndone
					}
					return w.note(ctx, b)
				})
				w.feed(30*time.Second, "0", 1)
				w.wantAll()
				w.wantSaved("0", 0)
				w.wantCalm()
				for i, attempt := range c.attempts {
					if attempt != 1 || i > 0 && c.times[i].Sub(c.times[i-1]) > time.Second {
						t.Fatalf("%d lanes: attempts %v at %v", lanes, c.attempts, c.times)
					}
				}
				if s := w.status(a, "0"); s.State != processor.Running || s.Attempt != 1 || s.Err != nil {
					t.Errorf("%d lanes: the status says %+v", lanes, s)
				}
			})
		}
	}
}

// P4: what is given back between failures changes nothing about them.
func TestFailuresAreCountedApartFromWhatIsGivenBack(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.MaxBatch = lanes, 1
			cfg.Backoff = processor.Backoff{First: time.Second, Max: time.Hour}
			undone := processor.ErrUndone
			outcomes := []error{undone, errHandler, undone, errHandler, errHandler, undone, undone}
			var c calls
			a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				if n := c.note(b); n <= len(outcomes) {
					return outcomes[n-1]
				}
				return w.note(ctx, b)
			})
			w.feed(time.Minute, "0", 1)
			testkit.Slices(t, c.attempts, []int{1, 1, 2, 2, 3, 4, 4, 4}, "%d lanes: attempts", lanes)
			for i, most := range []time.Duration{1, 1, 1, 2, 4, 1, 1} {
				if wait := c.times[i+1].Sub(c.times[i]); wait > most*time.Second || wait < most*time.Second/2 {
					t.Errorf("%d lanes: after call %d came a wait of %v", lanes, i+1, wait)
				}
			}
			if len(w.errs) != 3 || w.reported(processor.ErrUndone) {
				t.Errorf("%d lanes: OnError was told of %v", lanes, w.errs)
			}
			if s := w.status(a, "0"); s.State != processor.Running || s.Err != nil {
				t.Errorf("%d lanes: the status says %+v", lanes, s)
			}
			outcomes = append(outcomes, nil, errHandler) // nil: of the call that was the last
			w.feed(500*time.Millisecond, "0", 1)
			if s := w.status(a, "0"); s.State != processor.Retrying {
				t.Errorf("%d lanes: the status says %+v", lanes, s)
			}
			after(time.Minute)
			if s := w.status(a, "0"); s.State != processor.Running {
				t.Errorf("%d lanes: the status says %+v", lanes, s)
			}
			w.wantAll()
		})
	}
}

// P4, F2: a call that took too long, or panicked, has failed, whatever it says.
func TestAFailureIsNotHiddenByGivingBack(t *testing.T) {
	for want, handle := range map[error]processor.Handler{
		processor.ErrHandlerTimeout: func(ctx context.Context, _ *processor.Batch) error { <-ctx.Done(); return processor.ErrUndone },
		processor.ErrUndone:         func(context.Context, *processor.Batch) error { panic(processor.ErrUndone) },
	} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.HandlerTimeout = time.Second
			w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
				if b.Attempt == 1 {
					return handle(ctx, b)
				}
				return w.note(ctx, b)
			})
			w.feed(10*time.Second, "0", 1)
			w.wantReported(want)
			w.wantAll()
		})
	}
}
