package processor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// own runs a test with an ownership that is trusted for a minute.
func own(t *testing.T, test func(t *testing.T, o *ownership, lost *int)) {
	synctest.Test(t, func(t *testing.T) {
		lost := 0
		o := newOwnership(t.Context(), time.Now().Add(time.Minute), func() { lost++ })
		defer o.end()
		test(t, o, &lost)
	})
}

// pass lets time pass on the bubble's clock.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAnOwnershipEndsWhenItsLeaseCanBeProvenNoLonger(t *testing.T) { // P1
	own(t, func(t *testing.T, o *ownership, lost *int) {
		pass(59 * time.Second)
		o.prove(time.Now().Add(time.Minute))
		o.prove(time.Now().Add(time.Second)) // an answer that comes late proves nothing more
		pass(59 * time.Second)
		if !o.proven() || o.lost() || o.mayCall(false) != nil {
			t.Fatal("lost although it was renewed")
		}
		pass(time.Second)
		o.prove(time.Now().Add(time.Minute))
		if o.proven() || !o.lost() || *lost != 1 {
			t.Fatalf("still owned, or proven again; told %d times", *lost)
		}
		for name, ctx := range map[string]context.Context{"own": o.own, "work": o.work, "read": o.read} {
			if context.Cause(ctx) != ErrLeaseLost {
				t.Errorf("%s ended with %v", name, context.Cause(ctx))
			}
		}
		if o.mayCall(true) != ErrLeaseLost || o.closeReason() != LeaseLost || o.reason() != ErrLeaseLost {
			t.Errorf("calls may start (%v), or another reason: %v", o.mayCall(true), o.reason())
		}
	})
}

func TestADrainLetsCallsEndAndItsFirstReasonCounts(t *testing.T) { // P4
	own(t, func(t *testing.T, o *ownership, lost *int) {
		o.hurry(0) // nothing to hurry
		if !o.drain(ErrShutdown, 20*time.Second) || o.drain(ErrStalled, 0) {
			t.Error("the second reason counts")
		}
		if o.mayCall(false) != ErrShutdown || o.mayCall(true) != nil {
			t.Errorf("new calls: %v, calls to catch up: %v", o.mayCall(false), o.mayCall(true))
		}
		pass(10 * time.Second)
		o.hurry(time.Second)
		pass(time.Second)
		if context.Cause(o.work) != ErrShutdown || o.lost() {
			t.Errorf("after the time to drain: %v, lost %v", o.work.Err(), o.lost())
		}
		if o.closeReason() != Shutdown {
			t.Errorf("closed for %v", o.closeReason())
		}
		o.lose(ErrLeaseLost)
		o.lose(ErrStalled)
		if o.closeReason() != LeaseLost || o.reason() != ErrShutdown || *lost != 1 {
			t.Errorf("closed for %v, given up for %v, told %d times", o.closeReason(), o.reason(), *lost)
		}
	})
}

func TestWhatContextsEndWithIsOneOfFewCauses(t *testing.T) {
	for _, c := range []struct{ why, want error }{
		{ErrStalled, ErrHandoff}, {errLetGo, ErrHandoff}, {nil, ErrHandoff}, {ErrShutdown, ErrShutdown},
		{timedOut{errors.New("late")}, ErrHandlerTimeout}, {ErrLeaseLost, ErrLeaseLost},
	} {
		t.Run(fmt.Sprint(c.why), func(t *testing.T) {
			testkit.Equal(t, publicCause(c.why), c.want)
		})
	}
}
