package delivery

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// resource makes a subscription's endpoint a hub.
func resource(s *topics.Settings) { s.Webhook, s.Hub = nil, "target" }

// G3, G4, G5: each answer, and what becomes of the event.
func TestAnswersDecide(t *testing.T) {
	const never = time.Duration(-1)
	for _, c := range []struct {
		name   string
		result webhook.Result
		change func(*topics.Settings)
		again  time.Duration // zero: delivered; never: given up
	}{
		{name: "200 is success", result: status(200)},
		{name: "201 is success", result: status(201)},
		{name: "202 is success", result: status(202)},
		{name: "203 is success", result: status(203)},
		{name: "204 is success", result: status(204)},
		{name: "205 is not", result: status(205), again: 10 * time.Second},
		{name: "206 is not", result: status(206), again: 10 * time.Second},
		{name: "a redirect is not followed, and tried again", result: status(302), again: 10 * time.Second},
		{name: "400 is given up", result: status(400), again: never},
		{name: "401 is given up by webhooks", result: status(401), again: never},
		{name: "403 is given up", result: status(403), again: never},
		{name: "404 is given up by webhooks", result: status(404), again: never},
		{name: "413 of a single event is given up", result: status(413), again: never},
		{name: "400 is given up by resources", result: status(400), change: resource, again: never},
		{name: "403 is given up by resources", result: status(403), change: resource, again: never},
		{name: "413 is given up by resources", result: status(413), change: resource, again: never},
		{name: "401 waits five minutes at resources", result: status(401), change: resource, again: 5 * time.Minute},
		{name: "404 waits five minutes at resources", result: status(404), change: resource, again: 5 * time.Minute},
		{name: "408 waits two minutes", result: status(408), again: 2 * time.Minute},
		{name: "503 waits thirty seconds", result: status(503), again: 30 * time.Second},
		{name: "500 waits ten seconds", result: status(500), again: 10 * time.Second},
		{name: "429 waits ten seconds", result: status(429), again: 10 * time.Second},
		{name: "410 is tried again", result: status(410), again: 10 * time.Second},
		{name: "no answer in time is tried again", result: outcome(retry.TimedOut), again: 10 * time.Second},
		{name: "no connection is tried again", result: outcome(retry.SocketError), again: 10 * time.Second},
		{name: "no address is tried again", result: outcome(retry.ResolutionError), again: 10 * time.Second},
		{
			name: "Retry-After is honoured", again: time.Minute,
			result: webhook.Result{Status: 503, Outcome: retry.Busy, RetryAfter: 50 * time.Second},
		},
		{
			name: "Retry-After is capped", again: time.Hour,
			result: webhook.Result{Status: 429, Outcome: retry.Busy, RetryAfter: 5 * time.Hour},
		},
		{
			name: "a schedule of one's own has no floors", result: status(503), again: 2 * time.Second,
			change: func(s *topics.Settings) { s.Retry.Schedule = []time.Duration{2 * time.Second} },
		},
		{
			name: "a floor of one's own", result: status(503), again: 3 * time.Minute,
			change: func(s *topics.Settings) { s.Retry.Floors = map[int]time.Duration{503: 3 * time.Minute} },
		},
		{
			name: "one's own list of what is not retried", result: status(500), again: never,
			change: func(s *topics.Settings) { s.Retry.NoRetry = []int{500} },
		},
		{name: "abort-message gives up", result: webhook.Result{Status: 500, Outcome: retry.GenericError, Abort: true}, again: never},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.hub("target", 1)
				y.topic("orders")
				changes := []func(*topics.Settings){}
				if c.change != nil {
					changes = append(changes, c.change)
				}
				y.subscribe("orders", "receiver", changes...)
				y.sender.always(c.result)
				wait()
				y.publish("orders", "a")
				wait()
				y.sender.always(ok())
				after(12 * time.Hour)
				drops, letters := y.sender.all(""), y.dead.all()
				switch {
				case c.again == 0 && (len(drops) != 1 || len(letters) != 0):
					t.Errorf("%d requests and %d dead letters, want it to be delivered", len(drops), len(letters))
				case c.again == never && (len(drops) != 1 || len(letters) != 1 || letters[0].Reason != retry.ReasonRefused):
					t.Errorf("%d requests, dead letters %+v, want it to be given up", len(drops), letters)
				case c.again > 0 && (len(drops) != 2 || drops[1].at.Sub(drops[0].at) != c.again):
					t.Errorf("requests %+v, want a second after %v", drops, c.again)
				}
			})
		})
	}
}

func (y *yard) hub(name string, partitions int) {
	y.t.Helper()
	if _, err := y.broker.CreateHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions}); err != nil {
		y.t.Fatal(err)
	}
}

// G6
func TestAttemptsAreLimited(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "broken", func(s *topics.Settings) {
			s.Retry.MaxAttempts, s.Retry.Schedule = 3, []time.Duration{time.Second}
		})
		y.sender.always(status(500))
		wait()
		y.publish("orders", "a")
		after(time.Minute)
		testkit.Equal(t, len(y.sender.all("")), 3, "attempts")
		letters := y.dead.all()
		if len(letters) != 1 || letters[0].Reason != retry.ReasonAttempts || letters[0].Attempts != 3 ||
			letters[0].LastOutcome != retry.GenericError || letters[0].LastStatus != 500 {
			t.Errorf("dead letters %+v", letters)
		}
		if st := y.stats(id); st.DeadLettered[retry.ReasonAttempts] != 1 || st.Failed["GenericError"] != 3 || st.Attempts != 3 {
			t.Errorf("stats %+v", st)
		}
	})
}

// G6: it is looked at when the next attempt falls due, never between.
func TestTimeToLiveIsLookedAtWhenAnAttemptFallsDue(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("broken", func(s *topics.Settings) { s.Retry.TimeToLive = 65 * time.Second })
		y.sender.always(status(500))
		y.publish("orders", "a")
		after(99 * time.Second) // tried at 0, 10, 40 s; due again at 100 s
		testkit.Equal(t, len(y.sender.all("")), 3, "attempts")
		wantIDs(t, "dead", y.dead.ids(""), nil)
		after(time.Second)
		letters := y.dead.all()
		if len(letters) != 1 || letters[0].Reason != retry.ReasonAge || letters[0].LastOutcome != retry.GenericError {
			t.Errorf("dead letters %+v", letters)
		}
		testkit.Equal(t, len(y.sender.all("")), 3, "attempts")
	})
}

// G8
func TestWithoutATargetEventsAreDroppedAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("placeless", func(s *topics.Settings) { s.DeadLetter = topics.Target{} })
		y.sender.always(status(400))
		y.publish("orders", "a", "b")
		wait()
		wantIDs(t, "dead", y.dead.ids(""), nil)
		if st := y.stats(id); st.Dropped[retry.ReasonRefused] != 2 {
			t.Errorf("stats %+v", st)
		}
		after(2 * time.Second)
		y.restart()
		after(time.Hour)
		y.wantRequests("", 2, "and what was dropped does not come again")
	})
}
