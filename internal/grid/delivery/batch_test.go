package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

// batched asks for batches.
func batched(events, kib int) func(*topics.Settings) {
	return func(s *topics.Settings) { s.MaxEvents, s.PreferredKiB = events, kib }
}

// large makes an id of so many bytes.
func large(prefix string, bytes int) string { return prefix + strings.Repeat("x", bytes/3) }

func sizes(drops []drop) []int {
	var all []int
	for _, d := range drops {
		all = append(all, len(d.ids))
	}
	return all
}

// G2
func TestBatches(t *testing.T) {
	for _, c := range []struct {
		name   string
		change []func(*topics.Settings)
		ids    []string
		want   []int // sizes of the batches, in any order
	}{
		{name: "off: one event a request", ids: ids("e", 5), want: []int{1, 1, 1, 1, 1}},
		{name: "a maximum of one", change: []func(*topics.Settings){batched(1, 0)}, ids: ids("e", 2), want: []int{1, 1}},
		{name: "never more than the maximum", change: []func(*topics.Settings){batched(10, 0)}, ids: ids("e", 25), want: []int{5, 10, 10}},
		{name: "never waits to be full", change: []func(*topics.Settings){batched(100, 0)}, ids: ids("e", 3), want: []int{3}},
		{
			name: "up to the preferred size", change: []func(*topics.Settings){batched(100, 4)},
			ids: []string{large("a", 900), large("b", 900), large("c", 900), large("d", 900), large("e", 900)}, want: []int{2, 3},
		},
		{
			name: "one larger than the preferred size goes alone", change: []func(*topics.Settings){batched(100, 2)},
			ids: []string{"a", large("b", 9000), "c"}, want: []int{1, 1, 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.orders("receiver", c.change...)
				y.publish("orders", c.ids...)
				wait()
				wantIDs(t, "delivered", y.sender.delivered(""), c.ids)
				testkit.Slices(t, slices.Sorted(slices.Values(sizes(y.sender.all("")))), c.want, "batches of")
			})
		})
	}
}

// G2: all or none.
func TestOneAnswerDecidesForTheWholeBatch(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", batched(10, 0))
		y.sender.always(status(500))
		y.publish("orders", ids("e", 6)...)
		wait()
		y.sender.always(ok())
		after(10 * time.Second)
		drops := y.sender.all("")
		testkit.MustEqual(t, len(drops), 2, "requests")
		testkit.Equal(t, len(drops[1].ids), 6, "events that are tried again together")
	})
}

// G2: attempts are each event's own.
func TestEventsOfOneBatchMayHaveBeenTriedDifferently(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", batched(10, 0), func(s *topics.Settings) {
			s.Concurrency = 1
			s.Retry.MaxAttempts, s.Retry.Schedule = 2, []time.Duration{time.Second}
		})
		y.sender.always(status(500))
		y.publish("orders", "old")
		wait()
		y.sender.says(func(ctx context.Context, d drop) webhook.Result {
			time.Sleep(1500 * time.Millisecond) // so that the next batch has both
			return status(500)
		})
		y.publish("orders", "filler")
		time.Sleep(500 * time.Millisecond)
		y.publish("orders", "new")
		after(time.Minute)
		mixed := slices.IndexFunc(y.sender.all(""), func(d drop) bool { return len(d.ids) == 2 })
		if mixed < 0 || slices.Min(y.sender.all("")[mixed].attempts) != 0 || slices.Max(y.sender.all("")[mixed].attempts) != 1 {
			t.Fatalf("requests %+v, want one with both", y.sender.all(""))
		}
		for _, p := range y.dead.all() {
			testkit.Equal(t, p.Attempts, 2, "attempts")
			testkit.Equal(t, p.Reason, retry.ReasonAttempts)
		}
		wantIDs(t, "dead", y.dead.ids(""), []string{"old", "filler", "new"})
	})
}

// G2, G4: a batch that is too large is taken apart before anything is given up.
func TestABatchThatIsTooLargeIsTakenApart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", batched(16, 0))
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if len(d.ids) > 3 || slices.Contains(d.ids, "e00005") {
				return status(413)
			}
			return ok()
		})
		y.publish("orders", ids("e", 16)...)
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), slices.DeleteFunc(ids("e", 16), func(id string) bool { return id == "e00005" }))
		y.wantLetter(retry.ReasonRefused, 1)
		for _, d := range y.sender.all("") {
			testkit.Equal(t, slices.Max(d.attempts), 0, "taking a batch apart used an attempt: %+v", d)
		}
		testkit.Equal(t, y.stats(id).Endpoint.State, retry.Well, "endpoint")
	})
}

// Dynamic headers are one for a request.
func TestEventsWithDifferentHeadersDoNotShareABatch(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", batched(100, 0), func(s *topics.Settings) {
			s.Headers = []topics.Header{{Name: "X-Kind", Field: "eventtype"}}
		})
		var all []string
		for i := range 20 {
			all = append(all, fmt.Sprintf("%c/%d", 'a'+i%2, i))
		}
		y.publish("orders", all...)
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), all)
		testkit.Slices(t, sizes(y.sender.all("")), []int{10, 10}, "batches of")
	})
}

// resource makes a subscription's endpoint a hub.
func resource(s *topics.Settings) { s.Webhook, s.Hub = nil, "target" }

// G3, G4, G5: answers of each kind, and what becomes of the event. Package retry has all statuses.
func TestAnswersDecide(t *testing.T) {
	const never = time.Duration(-1)
	for _, c := range []struct {
		name   string
		result webhook.Result
		change func(*topics.Settings)
		again  time.Duration // zero: delivered; never: given up
	}{
		{name: "200 is success", result: status(200)},
		{name: "204 is success", result: status(204)},
		{name: "205 is not", result: status(205), again: 10 * time.Second},
		{name: "a redirect is not followed, and tried again", result: status(302), again: 10 * time.Second},
		{name: "400 is given up", result: status(400), again: never},
		{name: "401 is given up by webhooks", result: status(401), again: never},
		{name: "413 of a single event is given up", result: status(413), again: never},
		{name: "401 waits five minutes at resources", result: status(401), change: resource, again: 5 * time.Minute},
		{name: "408 waits two minutes", result: status(408), again: 2 * time.Minute},
		{name: "503 waits thirty seconds", result: status(503), again: 30 * time.Second},
		{name: "500 waits ten seconds", result: status(500), again: 10 * time.Second},
		{name: "no answer in time is tried again", result: outcome(retry.TimedOut), again: 10 * time.Second},
		{name: "no connection is tried again", result: outcome(retry.SocketError), again: 10 * time.Second},
		{
			name: "Retry-After is honoured", again: time.Minute,
			result: webhook.Result{Status: 503, Outcome: retry.Busy, RetryAfter: 50 * time.Second},
		},
		{
			name: "a schedule of one's own has no floors", result: status(503), again: 2 * time.Second,
			change: func(s *topics.Settings) { s.Retry.Schedule = []time.Duration{2 * time.Second} },
		},
		{
			name: "one's own list of what is not retried", result: status(500), again: never,
			change: func(s *topics.Settings) { s.Retry.NoRetry = []int{500} },
		},
		{name: "abort-message gives up", result: webhook.Result{Status: 500, Outcome: retry.GenericError, Abort: true}, again: never},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.Hub(y.t, "target", 1)
				y.orders("receiver", c.change)
				y.sender.always(c.result)
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

// G6
func TestAttemptsAreLimited(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken", func(s *topics.Settings) {
			s.Retry.MaxAttempts, s.Retry.Schedule = 3, []time.Duration{time.Second}
		})
		y.sender.always(status(500))
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
		id := y.orders("targetless", func(s *topics.Settings) { s.DeadLetter = topics.Target{} })
		y.sender.always(status(400))
		y.publish("orders", "a", "b")
		wait()
		wantIDs(t, "dead", y.dead.ids(""), nil)
		y.wantStats(id, func(st Stats) bool { return st.Dropped[retry.ReasonRefused] == 2 })
		after(2 * time.Second)
		y.restart()
		after(time.Hour)
		y.wantRequests("", 2, "and what was dropped does not come again")
	})
}

// late times out, and gives the answer that comes in the end after a while.
func late(after time.Duration, end webhook.Result) webhook.Result {
	answer := make(chan webhook.Result, 1)
	time.AfterFunc(after, func() { answer <- end })
	return webhook.Result{Outcome: retry.TimedOut, Late: answer}
}

// G5: a success that comes after the time-out takes the event out of the retry queue.
func TestALateSuccessIsASuccess(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(y *yard) string
	}{
		{"that waits in a retry log", func(y *yard) string { return y.subscribe("orders", "receiver") }},
		{"in ordered mode", func(y *yard) string { return y.subscribe("orders", "receiver", ordered) }},
		{"in a batch", func(y *yard) string { return y.subscribe("orders", "receiver", batched(10, 0)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.topic("orders")
				id := c.change(y)
				y.sender.says(func(context.Context, drop) webhook.Result { return late(5*time.Second, ok()) })
				wait()
				y.publish("orders", "k1:1", "k2:2")
				wait()
				y.sender.always(ok())
				requests := len(y.sender.all(""))
				after(time.Hour)
				if n := len(y.sender.all("")); n != requests {
					t.Errorf("%d more requests, want none", n-requests)
				}
				st := y.stats(id)
				if st.Delivered != 2 || len(st.Waiting) != 0 || st.Queued != 0 {
					t.Errorf("stats %+v, want two delivered", st)
				}
				y.publish("orders", "k1:3")
				wait()
				wantIDs(t, "after it", y.sender.delivered(""), []string{"k1:3"})
			})
		})
	}
}

// Events of one batch may have been tried differently, and wait in different logs; the answer is
// for all of them.
func TestALateSuccessOfAMixedBatch(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", batched(10, 0), func(s *topics.Settings) { s.Concurrency = 1 })
		y.sender.says(func(context.Context, drop) webhook.Result {
			time.Sleep(time.Second)
			return late(5*time.Second, ok())
		})
		l := y.lane(id)
		y.publish("orders", "filler") // what comes while it is under way goes together
		wait()
		tried := pending.Delivery{
			Subscription: id, Source: l.source.id, Sequence: 100, Published: time.Now(), Alive: time.Now(),
			Attempts: 3, Form: schema.EventGridForm, Event: eventOf("tried"),
		}
		testkit.Must(t, y.service.Redeliver(t.Context(), []pending.Delivery{tried}))
		y.publish("orders", "new")
		after(3 * time.Second)
		if drops := y.sender.all(""); len(drops) != 2 || len(drops[1].ids) != 2 {
			t.Fatalf("requests %+v, want the second to have both", drops)
		}
		after(time.Hour)
		y.wantRequests("", 2, "so far")
	})
}

func TestALateFailureIsNothingNew(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "receiver")
		y.sender.says(func(context.Context, drop) webhook.Result { return late(5*time.Second, status(500)) })
		wait()
		y.publish("orders", "a")
		wait()
		y.sender.always(ok())
		after(10 * time.Second)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a"})
	})
}

func TestWhatIsRememberedOfLateSuccessesIsBounded(t *testing.T) {
	var s lates
	for i := range int64(lateMarks + 10) {
		s.add([]key{{sequence: i}})
	}
	if s.took(key{sequence: 9}) || !s.took(key{sequence: 10}) || s.took(key{sequence: 10}) {
		t.Error("the oldest should be forgotten, and each found once")
	}
	testkit.Equal(t, fmt.Sprint(len(s.marks), s.count.Load()), fmt.Sprint(lateMarks-1, lateMarks-1))
}
