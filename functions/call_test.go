package functions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// F2: a time-out is a failed attempt, whatever the handler returns after it.
func TestATimeOutIsAFailedAttempt(t *testing.T) {
	for name, returned := range map[string]error{"the context's error": context.DeadlineExceeded, "nil": nil, "Skip": Skip("no")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				w.orders.SendN("0", 1)
				b := binding()
				b.Timeout = 5 * time.Second
				var seen error
				in := w.start("a", func(ctx context.Context, b *Batch) error {
					if until, ok := ctx.Deadline(); !ok || time.Until(until) != 5*time.Second {
						t.Errorf("deadline %v %v", until, ok)
					}
					<-ctx.Done()
					seen = context.Cause(ctx)
					testkit.Equal(t, ctx.Err(), context.DeadlineExceeded, "Err")
					return returned
				}, b)
				after(5500 * time.Millisecond)
				w.wantCalls("0:0 1")
				w.wantSaved("0", -1)
				after(time.Minute)
				w.wantCalls("0:0 1", "0:0 2", "0:0 3")
				w.wantAway("0/0")
				w.wantSaved("0", 0)
				if seen != ErrTimeout || !errors.Is(seen, context.DeadlineExceeded) {
					t.Errorf("the cause was %v", seen)
				}
				if got := w.poisonEvents()[0].Reason; !strings.HasPrefix(got, "the call took too long") || !strings.HasSuffix(got, "no end within 5s") {
					t.Errorf("the reason is %q", got)
				}
				if s := in.Status()[0]; s.Timeouts != 3 || s.Failed != 3 || s.Calls != 3 || s.Retried != 2 || s.Poisoned != 1 || s.Done != 0 {
					t.Errorf("status %+v", s)
				}
				in.stop()
			})
		})
	}
}

// F2: a cancellation is no failed attempt and moves nothing, whatever the handler returns.
func TestACancelledCallCountsForNothing(t *testing.T) {
	for name, returned := range map[string]error{"an error": errBad, "nil": nil, "Poison": Poison(errBad)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				w.orders.SendN("0", 3)
				b := binding()
				b.Retry, b.Timeout = None(), time.Hour
				var cause error
				in := w.start("a", func(ctx context.Context, b *Batch) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return returned
				}, b)
				after(time.Second)
				in.stop()
				testkit.Equal(t, cause, processor.ErrShutdown, "the cause")
				w.wantSaved("0", -1)
				w.wantAway()
				if work := w.work("0"); len(work.Units) > 0 || !work.Clean {
					t.Errorf("recorded %s", show(work))
				}
				next := w.start("b", failOn(), b)
				after(time.Second)
				w.wantCalls("0:0-2 1", "0:0-2 1")
				next.stop()
			})
		})
	}
}

// F2: the same when the lease is lost, and whoever has it next calls for the first time.
func TestALostLeaseIsNoFailedAttempt(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 3)
		l := &life{}
		b := binding()
		b.Timeout = time.Hour
		a := w.startIn(l, "a", func(ctx context.Context, b *Batch) error {
			<-ctx.Done()
			return errBad
		}, b)
		after(time.Second)
		l.setDeny(func(string) error { return errDown }) // it lives, but cannot renew
		next := w.start("b", failOn(), b)
		after(2 * time.Minute)
		w.wantCalls("0:0-2 1", "0:0-2 1")
		w.wantSaved("0", 2)
		w.wantAway()
		l.setDeny(nil)
		a.stop()
		next.stop()
	})
}

func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 2)
		b := binding()
		b.Retry = None()
		in := w.start("a", func(ctx context.Context, b *Batch) error {
			if slices.ContainsFunc(b.Events, func(ev event.Event) bool { return string(ev.Body) == "1" }) {
				panic("boom")
			}
			return nil
		}, b)
		after(time.Second)
		w.wantAway("0/1")
		l := w.poisonEvents()[0]
		if !strings.HasPrefix(l.Reason, "panicked at functions/call_test.go:") || !strings.HasSuffix(l.Reason, ": boom") ||
			!strings.Contains(l.Stack, "call_test.go") {
			t.Errorf("the poison event says %q with stack %q", l.Reason, l.Stack)
		}
		if s := in.Status()[0]; s.Panics != 2 || s.Done != 1 || s.Poisoned != 1 {
			t.Errorf("status %+v", s)
		}
		in.stop()
	})
}

// A handler that does not heed its context is waited for: no event is handled twice at once.
func TestAStubbornCallIsWaitedForAndComplainedOf(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		b := binding()
		b.Timeout = time.Second
		running := 0
		in := w.start("a", func(ctx context.Context, b *Batch) error {
			if running++; running > 1 {
				t.Error("two calls at once")
			}
			time.Sleep(5 * time.Minute)
			running--
			return nil
		}, b)
		after(4 * time.Minute)
		w.wantCalls("0:0 1")
		if log := w.logged(); !strings.Contains(log, "ignores the end of its context") || strings.Count(log, "\n") > 6 {
			t.Errorf("logged %s", log)
		}
		after(time.Minute + 500*time.Millisecond)
		w.wantCalls("0:0 1")
		after(2 * time.Second)
		w.wantCalls("0:0 1", "0:0 2")
		in.cancel()
		<-in.done
		after(time.Hour) // the last call
	})
}

// ending is a context that ends when it is asked for the nth time.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left > 0 {
		return nil
	}
	return context.Canceled
}

// F2: an event that failed is not taken for done, though the partition is taken away at the very
// moment when Each returns.
func TestAnEventThatFailedIsNotDoneWhenTheCallIsCancelled(t *testing.T) {
	for n := 1; n < 10; n++ {
		c := &call{Context: &ending{t.Context(), n}, batch: &Batch{Events: []event.Event{event.Text("ok"), event.Text("bad"), event.Text("ok")}}}
		err := c.each(c, func(_ context.Context, ev event.Event) error {
			if string(ev.Body) == "bad" {
				return errBad
			}
			return nil
		})
		if c.finished > 1 {
			t.Errorf("ended at look %d: %d events are finished, and it returned %v", n, c.finished, err)
		}
	}
}

// F1
func TestEachEventHasAStableIDAndItsAttempt(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 3)
		var seen []string
		handle := Each(func(ctx context.Context, ev event.Event) error {
			seen = append(seen, fmt.Sprint(ID(ctx), " ", Attempt(ctx)))
			if ev.Sequence == 1 && Attempt(ctx) < 3 {
				return errBad
			}
			return nil
		})
		in := w.start("a", func(ctx context.Context, b *Batch) error {
			if got := b.ID(b.Events[0]); got != fmt.Sprintf("bill/orders/0/%d", b.Events[0].Sequence) || b.Epoch != 1 || b.Function != "bill" ||
				b.Hub != "orders" || b.Group != "$Default" || b.Partition != "0" {
				t.Errorf("batch %+v with id %s", b, got)
			}
			return handle(ctx, b)
		}, binding())
		after(time.Minute)
		want := []string{"bill/orders/0/0 1", "bill/orders/0/1 1", "bill/orders/0/1 2", "bill/orders/0/1 3", "bill/orders/0/2 1"}
		testkit.Slices(t, seen, want, "seen")
		w.wantSaved("0", 2)
		in.stop()
	})
}

func TestOutsideOfACallThereIsNoAttemptAndNoID(t *testing.T) {
	testkit.That(t, Attempt(context.Background()) == 0 && ID(context.Background()) == "", "there is")
}

// Each can be tested without a host.
func TestEachByItself(t *testing.T) {
	b := &Batch{Events: []event.Event{event.Text("a"), event.Text("b"), event.Text("c"), event.Text("d")}, Attempt: 2,
		Function: "f", Hub: "h", Partition: "3"}
	b.Events[1].Sequence = 1
	err := Each(func(ctx context.Context, ev event.Event) error {
		switch string(ev.Body) {
		case "b":
			testkit.That(t, ID(ctx) == "f/h/3/1" && Attempt(ctx) == 2, "id %s, attempt %d", ID(ctx), Attempt(ctx))
			return Skip("old")
		case "c":
			panic("no")
		case "d":
			t.Error("called behind a failure")
		}
		return nil
	})(context.Background(), b)
	var r *Results
	if !errors.As(err, &r) || len(r.Failed) != 2 || !slices.Equal(r.Untouched, []int{3}) || stackOf(r.Failed[2]) == "" {
		t.Errorf("it says %v", err)
	}
}

// The deadline is for each event, and those before it are done.
func TestEachHasADeadlineForEveryEvent(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 6)
		b := binding()
		b.Timeout, b.Retry = 10*time.Second, None()
		in := w.start("a", Each(func(ctx context.Context, ev event.Event) error {
			if until, _ := ctx.Deadline(); time.Until(until) != 10*time.Second {
				t.Errorf("event %d has %v", ev.Sequence, time.Until(until))
			}
			if ev.Sequence == 4 {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(9 * time.Second)
			return nil
		}), b)
		after(2 * time.Minute)
		w.wantCalls("0:0-5 1", "0:5 1")
		w.wantAway("0/4")
		w.wantSaved("0", 5)
		if s := in.Status()[0]; s.Timeouts != 1 || s.Done != 5 {
			t.Errorf("status %+v", s)
		}
		in.stop()
	})
}

// P2, F2: what Each has done before the partition is given up is not done again.
func TestEachStopsBetweenEventsWhenThePartitionIsGivenUp(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 10)
		slow := Each(func(ctx context.Context, ev event.Event) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		a := w.start("a", slow, binding())
		after(10 * time.Second)
		a.stop()
		w.wantSaved("0", 3)
		b := w.start("b", slow, binding())
		after(time.Minute)
		w.wantCalls("0:0-9 1", "0:4-9 1")
		w.wantSaved("0", 9)
		b.stop()
	})
}

// The same where the event under way does not end in time: only it comes again.
func TestWhatEachHadDoneBeforeItWasCancelledIsDone(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 10)
		a := w.start("a", Each(func(ctx context.Context, ev event.Event) error {
			if ev.Sequence == 4 {
				<-ctx.Done()
			}
			return ctx.Err()
		}), binding())
		after(time.Second)
		a.stop()
		w.wantSaved("0", 3)
		b := w.start("b", failOn(), binding())
		after(time.Second)
		w.wantCalls("0:0-9 1", "0:4-9 1")
		b.stop()
	})
}

// But a middleware that undoes what was done has the last word.
func TestAMiddlewareThatUndoesWhatEachDidIsBelieved(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 3)
		b := binding()
		rollback := errors.New("rolled back")
		b.Middleware = []Middleware{func(next Handler) Handler {
			return func(ctx context.Context, b *Batch) error {
				if next(ctx, b) != nil {
					return rollback
				}
				return nil
			}
		}}
		a := w.start("a", Each(func(ctx context.Context, ev event.Event) error {
			if ev.Sequence == 2 {
				<-ctx.Done()
			}
			return ctx.Err()
		}), b)
		after(time.Second)
		a.stop()
		w.wantSaved("0", -1)
	})
}

func TestMiddlewareIsCalledFromTheOutsideIn(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		var seen []string
		around := func(name string) Middleware {
			return func(next Handler) Handler {
				return func(ctx context.Context, b *Batch) error {
					seen = append(seen, name)
					defer func() { seen = append(seen, "/"+name) }()
					return next(ctx, b)
				}
			}
		}
		b := binding()
		b.Middleware = []Middleware{around("first"), around("second")}
		in := w.start("a", func(ctx context.Context, b *Batch) error {
			seen = append(seen, "handler")
			return nil
		}, b)
		after(time.Second)
		testkit.Equal(t, strings.Join(seen, " "), "first second handler /second /first", "called")
		in.stop()
	})
}

// A call's context is a context like any other.
func TestACallsContextEndsThoseBelowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{Binding: Binding{Timeout: time.Second}, log: discard()}
		f.handler = func(ctx context.Context, b *Batch) error {
			below, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if until, _ := below.Deadline(); time.Until(until) > time.Second {
				t.Errorf("a deadline below is later: %v", time.Until(until))
			}
			type key struct{}
			value, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
			defer cancel()
			<-value.Done()
			if context.Cause(value) != ErrTimeout || Attempt(value) != 7 {
				t.Errorf("cause %v, attempt %d", context.Cause(value), Attempt(value))
			}
			return nil
		}
		out := f.invoke(t.Context(), &Batch{Events: []event.Event{event.Text("a")}, Attempt: 7}, nil)
		testkit.That(t, out.timedOut && !out.done(), "outcome %+v", out)
	})
}
