package delivery

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

// wantTrace is where an event of a topic is.
func (y *yard) wantTrace(id string, number int64, want TraceState) Trace {
	y.t.Helper()
	got, err := y.service.Trace(y.t.Context(), id, 0, number)
	testkit.Must(y.t, err)
	if got.State != want || !got.Whole {
		y.t.Errorf("event %d is %+v, want %s", number, got, want)
	}
	return got
}

// V2: an event is found wherever it waits, also after a restart.
func TestTraceOfAFailingEvent(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver")
		y.publish("orders", "a")
		wait()
		y.sender.always(webhook.Result{Status: 500, Outcome: retry.GenericError, Head: []byte("sorry")})
		y.publish("orders", "b")
		wait()
		if got := y.wantTrace(id, 0, TraceDelivered); got.Attempts != 1 || len(got.Requests) != 1 {
			t.Errorf("delivered: %+v", got)
		}
		for range 2 {
			got := y.wantTrace(id, 1, TraceWaiting)
			testkit.That(t, got.Attempts == 1 && len(got.History) == 1 && got.History[0].Said == "sorry" && got.Due.After(time.Now()), "waiting: %+v", got)
			after(3 * time.Second) // the marks are saved
			y.restart()
		}
		got := y.wantTrace(id, 0, TraceSettled) // nobody remembers the request, and nothing was dropped
		testkit.That(t, got.Drops && !got.Began.IsZero(), "settled: %+v", got)
		y.wantTrace(id, 2, TraceBehind)
		y.sender.always(ok())
		after(time.Minute)
		if got := y.wantTrace(id, 1, TraceDelivered); got.Attempts != 2 {
			t.Errorf("delivered: %+v", got)
		}
		testkit.ErrorIs(t, testkit.Err(y.service.Trace(t.Context(), id, 1, 0)), ErrNotFound)
		testkit.ErrorIs(t, testkit.Err(y.service.Trace(t.Context(), "nobody", 0, 0)), ErrNotFound)
	})
}

// V2, G7: on probation what was tried is parked, and what was not waits in the log.
func TestTraceOnProbation(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken", func(s *topics.Settings) { s.Concurrency = 1 })
		y.sender.always(outcome(retry.SocketError))
		y.publish("orders", ids("e", 30)...)
		wait()
		got := y.wantTrace(id, 0, TraceWaiting)
		testkit.Equal(t, got.Endpoint.State, retry.Waiting)
		after(11 * time.Second)
		got = y.wantTrace(id, 0, TraceParked)
		testkit.Equal(t, len(got.History), 1)
		y.wantTrace(id, 25, TraceBehind)
		y.restart()
		after(time.Second)
		y.wantTrace(id, 25, TraceBehind)
	})
}

// V2, G6: what was dropped is remembered with its reason, for a while.
func TestTraceOfADroppedEvent(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.DeadLetter = topics.Target{} })
		y.sender.always(webhook.Result{Status: 400, Outcome: retry.BadRequest, Head: []byte("no")})
		all := ids("e", maxDrops+20)
		y.publish("orders", all[:20]...) // which are forgotten first, whatever the order of the others
		wait()
		y.publish("orders", all[20:]...)
		wait()
		last := y.wantTrace(id, maxDrops+19, TraceDropped)
		testkit.That(t, last.Reason != "" && last.Attempts == 1 && len(last.History) == 1, "dropped: %+v", last)
		first := y.wantTrace(id, 0, TraceSettled)
		testkit.That(t, !first.Drops, "an event that was dropped and forgotten is said not to have been: %+v", first)
		testkit.Equal(t, y.service.Counts()[0].Dropped, maxDrops, "dropped of late")
		after(DroppedWithin + time.Second)
		testkit.Equal(t, y.service.Counts()[0].Dropped, 0, "dropped of late, later")
	})
}

// V2: paused, queued behind another of its key, and in a client's hands.
func TestTraceOfWhatIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		paused := y.orders("paused", func(s *topics.Settings) { s.Paused = true })
		ordered := y.subscribe("orders", "ordered", func(s *topics.Settings) { s.OrderBy = "data.n" })
		pull := y.subscribe("orders", "puller", func(s *topics.Settings) { s.Webhook, s.Pull = nil, &topics.Pull{} })
		wait()
		y.sender.always(outcome(retry.GenericError))
		y.publish("orders", "a", "b")
		wait()
		testkit.Equal(t, y.wantTrace(paused, 0, TraceBehind).Hold, "paused")
		y.wantTrace(ordered, 0, TraceWaiting)
		y.wantTrace(ordered, 1, TraceQueued)
		y.receive(pull, 1, time.Second)
		y.wantTrace(pull, 0, TraceLocked)
	})
}
