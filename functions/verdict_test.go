package functions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAVerdictIsFoundThroughAnyWrapping(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		name string
		err  error
		want triage.Result
	}{
		{"nil is done", nil, triage.Result{Verdict: triage.Done}},
		{"an error follows the policy", cause, triage.Result{Verdict: triage.Failed, Reason: "cause"}},
		{"an error without a text says at least that", errors.New(" "),
			triage.Result{Verdict: triage.Failed, Reason: "an error without a text (*errors.errorString)"}},
		{"a wait", RetryAfter(time.Minute, cause), triage.Result{Verdict: triage.Later, Wait: time.Minute, Reason: "cause"}},
		{"a wait without cause", RetryAfter(time.Minute, nil), triage.Result{Verdict: triage.Later, Wait: time.Minute, Reason: "again after 1m0s"}},
		{"a wait below zero is none", RetryAfter(-1, cause), triage.Result{Verdict: triage.Later, Reason: "cause"}},
		{"a wrapped wait", fmt.Errorf("bill: %w", RetryAfter(time.Second, cause)),
			triage.Result{Verdict: triage.Later, Wait: time.Second, Reason: "bill: cause"}},
		{"poison", Poison(cause), triage.Result{Verdict: triage.Poison, Reason: "cause"}},
		{"poison without cause", Poison(nil), triage.Result{Verdict: triage.Poison, Reason: "the handler says that it is poison"}},
		{"wrapped poison", fmt.Errorf("bill: %w", Poison(cause)), triage.Result{Verdict: triage.Poison, Reason: "bill: cause"}},
		{"joined poison", errors.Join(cause, Poison(cause)), triage.Result{Verdict: triage.Poison, Reason: "cause\ncause"}},
		{"unavailable", Unavailable(cause), triage.Result{Verdict: triage.Unavailable, Reason: "cause"}},
		{"unavailable without cause", Unavailable(nil), triage.Result{Verdict: triage.Unavailable, Reason: "what the function needs is down"}},
		{"nothing was reached", fmt.Errorf("bill: %w", Unavailable(fmt.Errorf("db: %w", &net.OpError{Op: "dial", Err: cause}))),
			triage.Result{Verdict: triage.Unreachable, Reason: "bill: db: dial: cause"}},
		{"unavailable, with a wait around it", RetryAfter(time.Minute, Unavailable(cause)),
			triage.Result{Verdict: triage.Unavailable, Wait: time.Minute, Reason: "cause"}},
		{"unavailable, with a wait in it", Unavailable(RetryAfter(time.Minute, cause)),
			triage.Result{Verdict: triage.Unavailable, Wait: time.Minute, Reason: "cause"}},
		{"skip", Skip("too old"), triage.Result{Verdict: triage.Skip, Reason: "too old"}},
		{"wrapped skip", fmt.Errorf("bill: %w", Skip("too old")), triage.Result{Verdict: triage.Skip, Reason: "too old"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(c.err, nil); got.whole != c.want || got.each != nil {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	if !errors.Is(RetryAfter(1, cause), cause) || !errors.Is(Poison(cause), cause) || !errors.Is(&Results{Failed: map[int]error{1: cause}}, cause) {
		t.Error("the cause is not found")
	}
}

func TestResultsAreByIndexAndBecomeVerdictsBySequence(t *testing.T) {
	events := make([]event.Event, 4)
	for i := range events {
		events[i].Sequence = int64(10 + i)
	}
	j := judge(fmt.Errorf("bill: %w", &Results{
		Failed:    map[int]error{0: errBad, 1: Skip("old"), 2: nil},
		Untouched: []int{3, 0},
	}), events)
	if j.whole.Verdict != triage.Done || len(j.each) != 3 || j.each[10].Verdict != triage.Failed || j.each[11].Verdict != triage.Skip ||
		j.each[13].Verdict != triage.Untouched {
		t.Errorf("judged %+v", j)
	}
	for _, wrong := range []*Results{{Failed: map[int]error{4: errBad}}, {Untouched: []int{-1}}} {
		if j := judge(wrong, events); j.whole.Verdict != triage.Failed || j.each != nil {
			t.Errorf("%+v is judged %+v", wrong, j)
		}
	}
	if j := judge(&Results{}, events); !j.done() {
		t.Errorf("empty results are judged %+v", j)
	}
}

// F3, F4: what is said of single events is done to them.
func TestResultsDecideForSingleEvents(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 6)
		in := w.start("a", func(_ context.Context, b *Batch) error {
			r := &Results{Failed: map[int]error{}}
			for i, ev := range b.Events {
				switch ev.Sequence {
				case 1:
					r.Failed[i] = errBad
				case 2:
					r.Failed[i] = Poison(errors.New("rotten"))
				case 3:
					r.Failed[i] = Skip("old")
				case 5:
					if len(b.Events) > 1 {
						r.Untouched = append(r.Untouched, i)
					}
				}
			}
			return r
		}, binding())
		after(time.Minute)
		w.wantCalls("0:0-5 1", "0:1 2", "0:1 3", "0:5 1")
		w.wantAway("0/1", "0/2")
		w.wantSaved("0", 5)
		if s := in.Status()[0]; s.Skipped != 1 || s.Done != 3 || s.Poisoned != 2 || s.Failed != 3 {
			t.Errorf("status %+v", s)
		}
		testkit.Equal(t, w.poisonEvents()[1].Reason, "rotten", "the reason")
		in.stop()
	})
}

// F3
func TestRetryAfterReplacesTheDelay(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		in := w.start("a", func(_ context.Context, b *Batch) error {
			if b.Attempt == 1 {
				return RetryAfter(time.Minute, errBad)
			}
			return nil
		}, binding())
		after(59 * time.Second)
		w.wantCalls("0:0 1")
		after(2 * time.Second)
		w.wantCalls("0:0 1", "0:0 2")
		in.stop()
	})
}

// F4
func TestPoisonIsDividedWithoutFurtherTries(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 4)
		in := w.start("a", func(_ context.Context, b *Batch) error {
			for _, ev := range b.Events {
				if ev.Sequence == 3 {
					return Poison(errBad)
				}
			}
			return nil
		}, binding())
		after(100 * time.Millisecond)
		w.wantCalls("0:0-3 1", "0:0-1 2", "0:2-3 2", "0:2 3", "0:3 3")
		w.wantAway("0/3")
		in.stop()
	})
}

func TestSkipIsDoneAndCounted(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 4)
		in := w.start("a", func(context.Context, *Batch) error { return Skip("not today") }, binding())
		after(time.Second)
		w.wantCalls("0:0-3 1")
		w.wantSaved("0", 3)
		if s := in.Status()[0]; s.Skipped != 4 || s.Done != 0 || s.Failed != 0 {
			t.Errorf("status %+v", s)
		}
		in.stop()
	})
}

// A handler that touches nothing is not called in a tight loop.
func TestACallThatTouchesNothingIsMadeAgainAfterAWhile(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 2)
		in := w.start("a", func(context.Context, *Batch) error { return &Results{Untouched: []int{0, 1}} }, binding())
		after(10 * time.Second)
		if n := len(w.gotCalls()); n < 5 || n > 11 {
			t.Errorf("%d calls in 10 s", n)
		}
		in.stop()
	})
}

// F3: no policy at all tries once; the default three times more.
func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		retry Retry
		calls int
	}{
		"none": {None(), 1}, "fixed": {Fixed(1, time.Second), 2}, "no retries at all": {Fixed(0, 0), 1},
		"exponential": {Exponential(5, time.Second), 6}, "the default": {Retry{}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				w.orders.SendN("0", 1)
				b := binding()
				b.Retry = c.retry
				in := w.start("a", failOn("0"), b)
				after(5 * time.Minute)
				testkit.Equal(t, len(w.gotCalls()), c.calls, "calls")
				w.wantAway("0/0")
				in.stop()
			})
		})
	}
}

// F3: for ever is for ever.
func TestRetriesForEver(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 3)
		b := binding()
		b.Retry, b.Breaker.Off = Fixed(Forever, time.Second), true
		in := w.start("a", failOn("1"), b)
		after(10 * time.Minute)
		if n := len(w.gotCalls()); n < 590 || n > 601 {
			t.Errorf("%d calls in ten minutes", n)
		}
		w.wantAway()
		w.wantSaved("0", -1)
		in.stop()
	})
}
