package delivery

import (
	"context"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// sharers are two lanes of different topics with one endpoint, which the second has just found to
// be ill, and for which it has more.
func sharers(t *testing.T, y *yard) (first, second *lane) {
	t.Helper()
	same := func(s *topics.Settings) {
		s.Webhook, s.Concurrency = &egress.Endpoint{URL: "https://same.example/hook"}, 1
	}
	y.topic("orders")
	y.topic("others")
	a, b := y.subscribe("orders", "first", same), y.subscribe("others", "second", same)
	y.sender.always(status(503))
	wait()
	y.publish("others", ids("e", 20)...)
	wait()
	first, second = y.lane(a), y.lane(b)
	testkit.MustEqual(t, second.endpoint.state(time.Now()).State, retry.Waiting, "the endpoint")
	return first, second
}

// probes makes a lane the one who is to probe, before it has sent anything.
func (e *endpoint) probes(l *lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prober = l
}

// G7: a lane that is paused when it is its turn to probe does not keep the others from it.
func TestAPausedLaneGivesTheProbeBack(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		first, second := sharers(t, y)
		y.sender.always(ok())
		second.endpoint.probes(first)
		y.change("orders", "first", func(s *topics.Settings) { s.Paused = true })
		after(time.Hour)
		wantIDs(t, "second", y.sender.delivered("second"), ids("e", 20))
	})
}

// G7: when an endpoint is found to be well before the probe was sent, nobody is the prober any
// more, so that the next probation has one of its own.
func TestAProbeThatIsNotNeededIsForgotten(t *testing.T) {
	for _, c := range []struct {
		name string
		heal func(y *yard, second *lane)
	}{
		{"a delivery that was on its way succeeds", func(_ *yard, second *lane) {
			second.endpoint.report(second, false, retry.Delivered, time.Now())
			second.poke(time.Now()) // as the worker does
		}},
		{"an operator resumes", func(y *yard, second *lane) {
			testkit.Check(y.t, y.service.Probe(second.id))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				first, second := sharers(t, y)
				second.endpoint.probes(first)
				c.heal(y, second) // and at once it is ill again
				after(time.Second)
				testkit.MustEqual(t, second.endpoint.state(time.Now()).State, retry.Waiting, "the endpoint")
				y.sender.always(ok())
				after(time.Hour)
				wantIDs(t, "second", y.sender.delivered("second"), ids("e", 20))
			})
		})
	}
}

// G5: an answer that comes late for an event that was given up is no answer to what is made of
// it later.
func TestALateSuccessAfterTheEndIsNotRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver", func(s *topics.Settings) { s.Retry.MaxAttempts = 1 })
		y.sender.says(func(context.Context, drop) webhook.Result { return late(5*time.Second, ok()) })
		wait()
		y.publish("orders", "e")
		after(time.Minute)
		letters := y.dead.all()
		testkit.MustEqual(t, len(letters), 1, "dead letters")
		y.change("orders", "receiver", func(s *topics.Settings) { s.Retry.MaxAttempts = 5 })
		wait()
		y.sender.always(status(503))
		letters[0].Attempts, letters[0].Alive = 0, time.Now()
		letters[0].Subscription = id
		testkit.Must(t, y.service.Redeliver(t.Context(), letters))
		wait()
		y.sender.always(ok())
		after(time.Hour)
		wantIDs(t, "after it was redriven", y.sender.delivered(""), []string{"e"})
	})
}
