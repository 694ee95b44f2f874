package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestStatsSayWhereEventsAre(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 2 })
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			switch d.ids[0] {
			case "refused":
				return status(400)
			case "again":
				return status(500)
			}
			time.Sleep(time.Hour)
			return ok()
		})
		after(38 * time.Second) // into the minute
		published := time.Now()
		y.publish("orders", "refused", "again")
		wait()
		after(time.Second)
		y.publish("orders", ids("e", 5000)...)
		after(time.Second)
		st := y.stats(id)
		if st.InFlight != 2 || st.Queued < 990 || st.Queued > 1000 || st.Matched != int64(4+st.Queued) || st.Behind != 5002-st.Matched || st.Delivered != 0 {
			t.Errorf("stats %+v", st)
		}
		if st.DeadLettered[retry.ReasonRefused] != 1 || st.Failed["BadRequest"] != 1 || st.Failed["GenericError"] != 1 || st.Attempts != 2 {
			t.Errorf("stats %+v", st)
		}
		if len(st.Waiting) != 1 || st.Waiting[0].Count != 1 || st.Waiting[0].Log != 10*time.Second {
			t.Errorf("stats %+v", st)
		}
		if !st.Oldest.Equal(published) {
			t.Errorf("oldest %v, want %v", st.Oldest, published)
		}
	})
}

// V4: what a list shows of a subscription at a glance: how the newest requests went, the oldest first and no more than
// are shown.
func TestStatsHaveTheNewestRequests(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 1 })
		testkit.Slices(t, y.stats(id).Recent, nil, "before the first")
		n := 0
		y.sender.says(func(context.Context, drop) webhook.Result {
			if n++; n == maxRecent+2 {
				return status(500)
			}
			time.Sleep(time.Duration(n) * time.Millisecond)
			return ok()
		})
		for i := range maxRecent + 2 {
			y.publish("orders", ids("e", i+1)[i:]...)
			after(time.Second)
		}
		recent := y.stats(id).Recent
		testkit.Equal(t, len(recent), maxRecent, "requests")
		testkit.Slices(t, recent[:2], []int{3, 4}, "the oldest that are shown")
		testkit.Slices(t, recent[maxRecent-2:], []int{maxRecent + 1, -1}, "the newest: one that failed, within a millisecond")
	})
}

// G11, V4: of an ordered subscription the keys are known that wait for an event that failed, and what stands behind it.
func TestStatsHaveTheKeysThatWait(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", ordered)
		testkit.Equal(t, y.stats(id).HeldKeys, 0, "keys at first")
		y.sender.always(status(500))
		y.publish("orders", "a")
		wait()
		st := y.stats(id)
		testkit.Equal(t, st.HeldKeys, 1, "keys")
		testkit.That(t, len(st.Held) == 1 && st.Held[0].Attempts == 1 && st.Held[0].Due.After(time.Now()), "it holds %+v", st.Held)
	})
}

func TestAttemptsAreRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.reconfigure(func(c *Config) { c.Attempts = 3 })
		id := y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 1 })
		y.sender.always(webhook.Result{Status: 500, Outcome: retry.GenericError, Head: []byte("sorry"), Err: "why"})
		if got, err := y.service.Attempts(t.Context(), id); err != nil || len(got) != 0 {
			t.Errorf("attempts %+v, %v before the first", got, err)
		}
		began := time.Now()
		y.publish("orders", "a")
		wait()
		want := AttemptRecord{
			Time: began, Events: 1, EventID: "a", Attempt: 1, Outcome: retry.GenericError, Status: 500,
			Head: "sorry", Err: "why", Next: began.Add(10 * time.Second),
		}
		if got, err := y.service.Attempts(t.Context(), id); err != nil || len(got) != 1 || !got[0].Time.Equal(want.Time) || !got[0].Next.Equal(want.Next) {
			t.Errorf("attempts %+v, %v, want %+v", got, err, want)
		} else {
			got[0].Time, got[0].Next, got[0].numbers = want.Time, want.Next, nil
			testkit.Deep(t, got[0], want)
		}
		y.sender.always(ok())
		y.publish("orders", "b", "c", "d")
		wait()
		got, err := y.service.Attempts(t.Context(), id)
		testkit.Must(t, err)
		var events []string
		for _, a := range got {
			events = append(events, a.EventID)
		}
		if !slices.Equal(events, []string{"d", "c", "b"}) || got[0].Attempt != 1 || !got[0].Next.IsZero() {
			t.Errorf("attempts %+v, want the newest three, newest first", got)
		}
		testkit.ErrorIs(t, testkit.Err(y.service.Attempts(t.Context(), "nobody")), ErrNotFound, "attempts of nobody")
	})
}

func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		registry := prometheus.NewPedanticRegistry()
		y.config = func(c *Config) { c.Metrics = registry }
		y.start()
		y.orders("receiver", func(s *topics.Settings) { s.DeadLetter, s.Concurrency = topics.Target{}, 1 })
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			switch d.ids[0] {
			case "refused":
				return status(400)
			case "again":
				return status(500)
			}
			return ok()
		})
		y.publish("orders", "refused", "fine", "good", "again")
		wait()
		err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eventyard_grid_attempts_total Requests that were made, by outcome.
# TYPE eventyard_grid_attempts_total counter
eventyard_grid_attempts_total{outcome="BadRequest",subscription="receiver",topic="orders"} 1
eventyard_grid_attempts_total{outcome="Delivered",subscription="receiver",topic="orders"} 2
eventyard_grid_attempts_total{outcome="GenericError",subscription="receiver",topic="orders"} 1
# HELP eventyard_grid_delivered_events_total Events that were delivered.
# TYPE eventyard_grid_delivered_events_total counter
eventyard_grid_delivered_events_total{subscription="receiver",topic="orders"} 2
# HELP eventyard_grid_dropped_events_total Events that were given up and had no place to go, by reason.
# TYPE eventyard_grid_dropped_events_total counter
eventyard_grid_dropped_events_total{reason="UndeliverableDueToClientError",subscription="receiver",topic="orders"} 1
# HELP eventyard_grid_matched_events_total Events that a subscription's filter let pass.
# TYPE eventyard_grid_matched_events_total counter
eventyard_grid_matched_events_total{subscription="receiver",topic="orders"} 4
# HELP eventyard_grid_retry_backlog_events Events that wait in retry logs.
# TYPE eventyard_grid_retry_backlog_events gauge
eventyard_grid_retry_backlog_events{subscription="receiver",topic="orders"} 1
# HELP eventyard_grid_endpoint_state Health of the endpoint: 0 healthy, 1 failing, 2 on probation, 3 probing.
# TYPE eventyard_grid_endpoint_state gauge
eventyard_grid_endpoint_state{subscription="receiver",topic="orders"} 1
`), "eventyard_grid_attempts_total", "eventyard_grid_delivered_events_total", "eventyard_grid_dropped_events_total",
			"eventyard_grid_matched_events_total", "eventyard_grid_retry_backlog_events", "eventyard_grid_endpoint_state")
		testkit.Check(t, err)
	})
}

// G8: redriven letters go to their subscription alone, before what is new.
func TestRedeliver(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.subscribe("orders", "other")
		y.sender.fails("receiver", status(400))
		wait()
		y.publish("orders", ids("e", 30)...)
		wait()
		y.sender.always(ok())
		y.sender.forget()
		letters := y.dead.all()
		for i := range letters {
			letters[i].Attempts, letters[i].Reason, letters[i].Alive = 0, "", time.Now()
			letters[i].Redrives++
		}
		testkit.Must(t, y.service.Redeliver(t.Context(), letters))
		wait()
		wantIDs(t, "receiver", y.sender.delivered("receiver"), ids("e", 30))
		wantIDs(t, "other", y.sender.delivered("other"), nil)
		testkit.Equal(t, y.stats(id).Parked, 0)
		err := y.service.Redeliver(t.Context(), []pending.Delivery{{Subscription: "nobody"}})
		testkit.ErrorIs(t, err, ErrNotFound, "redelivery to nobody")
	})
}

// Requests a second, or a minute where the endpoint said so.
func TestRateLimits(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", func(s *topics.Settings) { s.Rate = 2 })
		began := time.Now()
		y.publish("orders", ids("e", 21)...)
		after(time.Minute)
		drops := y.sender.all("")
		testkit.MustEqual(t, len(drops), 21, "requests")
		testkit.Equal(t, drops[20].at.Sub(began).Round(10*time.Millisecond), 10*time.Second, "the last after")
		y.sender.forget()
		y.publish("orders", ids("f", 5)...)
		wait()
		y.wantRequests("", 1, "at once")
	})
}

func TestTheLowerOfTwoRatesHolds(t *testing.T) {
	s := &topics.Subscription{Validation: topics.Validation{Rate: 120}}
	testkit.Equal(t, limitOf(s), 2, "limit")
	s.Rate = 1
	testkit.Equal(t, limitOf(s), 1, "limit")
	s.Rate = 3
	testkit.Equal(t, limitOf(s), 2, "limit")
}

func TestConcurrencyIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 5 })
		y.sender.after(time.Second, ok())
		y.publish("orders", ids("e", 100)...)
		after(time.Minute)
		if _, most := y.sender.underWay(); most != 5 || len(y.sender.all("")) != 100 {
			t.Errorf("%d requests, up to %d at once, want 100 and 5", len(y.sender.all("")), most)
		}
	})
}

// What cannot be read is counted and left out, whoever reads it: the feed, or a lane that catches
// up.
func TestUnreadableEventsAreCountedAndLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.subscribe("orders", "paused", func(s *topics.Settings) { s.Paused = true })
		wait()
		its, err := y.topics.Topic("orders")
		testkit.Must(t, err)
		log, err := y.topics.Log(&its)
		testkit.Must(t, err)
		stored, err := message.Append(nil, event.Event{Body: []byte("nonsense")})
		testkit.Must(t, err)
		batch := eventlog.Batch{Events: []eventlog.Event{{Message: []byte{0}}, {Message: stored}}}
		testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), log, batch)))
		y.publish("orders", "a")
		wait()
		testkit.Equal(t, testutil.ToFloat64(y.service.metrics.unreadable), 2, "left out by the feed")
		y.change("orders", "paused", func(s *topics.Settings) { s.Paused = false })
		after(time.Minute)
		for _, name := range []string{"receiver", "paused"} {
			wantIDs(t, name, y.sender.delivered(name), []string{"a"})
		}
	})
}
