package delivery

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

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
