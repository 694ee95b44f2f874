package delivery

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAPausedSubscriptionsEventsWait(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver")
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = true })
		wait()
		y.publish("orders", ids("e", 2000)...)
		after(time.Hour)
		y.wantRequests("", 0, "while paused")
		testkit.Equal(t, y.stats(id).Behind, 2000)
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = false })
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 2000))
		testkit.Equal(t, len(y.sender.delivered("")), 2000, "deliveries of 2000 events")
	})
}

// G6
func TestTimeToLiveRunsOnWhilePaused(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver", func(s *topics.Settings) { s.Paused, s.Retry.TimeToLive = true, 10*time.Minute })
		y.subscribe("orders", "picky", func(s *topics.Settings) {
			s.Paused, s.Retry.TimeToLive, s.Filter = true, 10*time.Minute, filter.Config{EventTypes: []string{"none"}}
		})
		wait()
		y.publish("orders", ids("e", 100)...)
		after(5 * time.Minute)
		y.publish("orders", ids("f", 100)...)
		after(5*time.Minute - time.Second)
		wantIDs(t, "dead", y.dead.ids(""), nil)
		after(time.Second + sweepEvery)
		wantIDs(t, "dead", y.dead.ids(retry.ReasonAge), ids("e", 100))
		y.wantStats(id, func(st Stats) bool { return st.Behind == 100 && st.DeadLettered[retry.ReasonAge] == 100 })
		y.restart()
		after(5*time.Minute + sweepEvery)
		wantIDs(t, "dead", y.dead.ids(retry.ReasonAge), append(ids("e", 100), ids("f", 100)...))
		y.wantRequests("", 0, "while paused")
	})
}

func TestADeletedSubscriptionGetsNothingMore(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.subscribe("orders", "other")
		y.sender.fails("receiver", status(503))
		wait()
		y.publish("orders", ids("e", 100)...) // some wait in a retry log
		after(31 * time.Second)               // and some in the parked log
		y.unsubscribe("orders", "receiver")
		wait()
		y.sender.forget()
		y.publish("orders", "x")
		after(25 * time.Hour)
		y.wantRequests("receiver", 0, "of a deleted subscription")
		wantIDs(t, "other", y.sender.delivered("other"), []string{"x"})
		testkit.ErrorIs(t, testkit.Err(y.service.Stats(t.Context(), id)), ErrNotFound, "stats of a deleted subscription")
		y.wantNoMemory("still in use")
		testkit.Equal(t, strings.Count(y.cursors("orders"), id), 0, "its cursor is still there")
	})
}

// cursors gives what is stored of a topic's lanes.
func (y *yard) cursors(topic string) string {
	y.t.Helper()
	its, err := y.topics.Topic(topic)
	testkit.Must(y.t, err)
	e, err := y.Memory.Get(y.t.Context(), cursorPrefix+its.ID+"/0")
	testkit.Must(y.t, err)
	return string(e.Value)
}

func TestADeletedTopicLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.topic("others")
		y.subscribe("orders", "receiver")
		y.subscribe("others", "receiver")
		wait()
		y.publish("orders", "a")
		after(2 * time.Second)
		testkit.Must(t, y.topics.DeleteTopic(t.Context(), "orders"))
		after(2 * time.Second)
		y.publish("others", "b")
		after(2 * time.Second)
		entries, err := y.Memory.List(t.Context(), cursorPrefix)
		if err != nil || len(entries) != 1 {
			t.Errorf("cursors %v, %v, want those of the other topic only", entries, err)
		}
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a", "b"})
	})
}

// What a deletion could not remove, because the yard died, the next start does.
func TestWhatADeletionLeftIsRemovedAtTheNextStart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver")
		y.sender.always(status(503))
		y.publish("orders", ids("e", 100)...)
		after(35 * time.Second) // some are in the parked log
		if n := y.stats(id).Parked; n == 0 {
			t.Fatal("nothing is in the parked log")
		}
		y.kill()
		y.unsubscribe("orders", "receiver")
		y.start()
		after(2 * time.Second)
		entries, err := y.Memory.List(t.Context(), "grid/")
		testkit.Must(t, err)
		for _, f := range entries {
			if strings.Contains(string(f.Value), id) || strings.HasPrefix(f.Key, cursorPrefix) {
				t.Errorf("%s is left: %.100q", f.Key, f.Value)
			}
		}
	})
}

func TestTheEndpointMayDisableItsSubscription(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", func(s *topics.Settings) { s.DisableOnGone = true })
		y.sender.always(webhook.Result{Status: 410, Outcome: retry.NotFound, Disable: true})
		y.publish("orders", "a")
		wait()
		sub, err := y.topics.Find(topics.Source{Topic: "orders"}, "receiver")
		if err != nil || sub.State != topics.Disabled || sub.Why == "" {
			t.Errorf("subscription %v %q, %v", sub.State, sub.Why, err)
		}
		y.sender.forget()
		y.publish("orders", "b")
		after(23 * time.Hour)
		y.wantRequests("", 0, "after the endpoint wanted no more")
		after(2 * time.Hour) // nothing is lost silently
		wantIDs(t, "dead", y.dead.ids(retry.ReasonAge), []string{"a", "b"})
	})
}

func TestAnExpiredSubscriptionGetsWhatWasPublishedBefore(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", func(s *topics.Settings) { s.Expires = time.Now().Add(time.Hour) })
		y.sender.always(status(500))
		after(59*time.Minute + 55*time.Second)
		y.publish("orders", "before")
		after(5 * time.Second)
		y.publish("orders", "behind")
		y.sender.always(ok())
		after(time.Hour)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"before"})
		wantIDs(t, "dead", y.dead.ids(""), nil)
	})
}

// A definition that cannot be used keeps its events until it can, or they are too old.
func TestAnUnusableDefinitionHoldsItsEvents(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("unusable")
		y.publish("orders", "a")
		after(23 * time.Hour)
		wantIDs(t, "dead", y.dead.ids(""), nil)
		after(2 * time.Hour)
		wantIDs(t, "dead", y.dead.ids(retry.ReasonAge), []string{"a"})
	})
}

func TestADefinitionMayChangeAtAnyTime(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"a"}} })
		y.publish("orders", "a/1", "b/1")
		wait()
		y.change("orders", "receiver", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"b"}} })
		wait()
		y.publish("orders", "a/2", "b/2")
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a/1", "b/2"})
		y.sender.always(status(503))
		y.publish("orders", "b/3")
		wait()
		y.change("orders", "receiver", func(s *topics.Settings) { s.Webhook.URL = "https://elsewhere.example" })
		wait()
		y.wantEndpoint(id, retry.Well)
		y.sender.always(ok())
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a/1", "b/2", "b/3"})
	})
}

func TestASubscriptionBeginsWhereItWasMade(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.publish("orders", "before")
		y.subscribe("orders", "receiver")
		y.subscribe("orders", "from-start", func(s *topics.Settings) { s.FromStart = true })
		y.publish("orders", "behind") // before the service has heard of them
		wait()
		wantIDs(t, "receiver", y.sender.delivered("receiver"), []string{"behind"})
		wantIDs(t, "from-start", y.sender.delivered("from-start"), []string{"before", "behind"})
	})
}

// G11: a subscription that has not agreed gets nothing, and what came meanwhile when it has.
func TestAPendingSubscriptionWaits(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		after(2 * time.Second)
		y.stop()
		y.setState(id, topics.Pending)
		y.start()
		y.publish("orders", "a")
		after(time.Hour)
		y.wantRequests("", 0, "while pending")
		y.setState(id, topics.Active)
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a"})
	})
}

// setState puts a state where the registry's own rules would not.
func (y *yard) setState(id string, state topics.State) {
	y.t.Helper()
	entries, err := y.Memory.List(y.t.Context(), "grid/subscriptions/")
	testkit.Must(y.t, err)
	for _, f := range entries {
		if strings.Contains(string(f.Value), id) {
			old := strings.Split(string(f.Value), `"state":"`)[1]
			old, _, _ = strings.Cut(old, `"`)
			y.replace(f, `"state":"`+old+`"`, `"state":"`+string(state)+`"`)
		}
	}
}

func (y *yard) replace(f meta.Entry, old, with string) {
	y.t.Helper()
	value := strings.Replace(string(f.Value), old, with, 1)
	testkit.Must(y.t, testkit.Err(y.Memory.CompareAndSet(y.t.Context(), f.Key, f.Revision, []byte(value))))
	wait()
}

func TestTheCursorsOfAllSubscriptionsFitOneEntry(t *testing.T) {
	value := []byte{cursorVersion}
	want := make(saved)
	for i := range topics.MaxSubscriptions {
		id := fmt.Sprintf("%013d", i)
		want[id] = math.MaxInt64 - int64(i)
		value = appendCursor(value, id, want[id])
	}
	testkit.Check(t, meta.CheckValue(value))
	if _, got, err := parseCursors(value); err != nil || !maps.Equal(got, want) {
		t.Errorf("%d of %d came back, %v", len(got), len(want), err)
	}
}

func FuzzCursors(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{cursorVersion})
	f.Add([]byte{cursorVersionEpoch, 0})
	f.Add([]byte{cursorVersionEpoch, 0xff, 0xff})
	f.Add(appendCursor(beginCursors(math.MaxInt64, 1), "abcdefghijklm", 5))
	f.Add(appendCursor(appendCursor([]byte{cursorVersion}, "abcdefghijklm", 5), "nopqrstuvwxyz", math.MaxInt64))
	f.Add([]byte{cursorVersion, 200, 'a'})
	f.Add([]byte{cursorVersion, 1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		epoch, marks, err := parseCursors(b)
		if err != nil {
			return
		}
		value := beginCursors(epoch, len(marks))
		for id, mark := range marks {
			if mark < 0 {
				t.Fatalf("%q has mark %d", id, mark)
			}
			value = appendCursor(value, id, mark)
		}
		if same, again, err := parseCursors(value); err != nil || same != epoch || !maps.Equal(again, marks) {
			t.Errorf("%v of epoch %d became %v of %d, %v", marks, epoch, again, same, err)
		}
	})
}

// What is done is not done again after a crash, but for what was done within the last second.
func TestCursorsAreSavedWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.publish("orders", ids("e", 20)...)
		after(time.Second + time.Millisecond)
		y.restart()
		after(time.Minute)
		y.wantRequests("", 20, "for 20 events")
		y.publish("orders", ids("f", 20)...)
		y.stop()
		y.start()
		after(time.Minute)
		y.wantRequests("", 40, "for 40 events: stopping saves")
	})
}

// A mark beyond the end of its log is of events that power loss has taken. New ones get their
// numbers; so the mark is put right before there are any, or another crash would pass them.
func TestAMarkBeyondTheEndIsPutRightAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.start()
		y.publish("orders", ids("e", 10)...)
		after(2 * time.Second)
		y.stop()
		entries, err := y.Memory.List(t.Context(), cursorPrefix)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d cursors, %v", len(entries), err)
		}
		ahead := appendCursor([]byte{cursorVersion}, id, 100)
		testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), entries[0].Key, meta.Revision(entries[0].Revision), ahead)))
		y.sender.says(func(ctx context.Context, _ drop) webhook.Result {
			<-ctx.Done()
			return outcome(retry.Canceled)
		})
		y.config = func(c *Config) { c.Grace = -1 }
		y.start()
		wait()
		y.publish("orders", "x", "y", "z")
		wait()
		y.restart()
		y.sender.always(ok())
		after(time.Minute)
		y.restart()
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), append(ids("e", 10), "x", "y", "z"))
		y.stop()
	})
}
