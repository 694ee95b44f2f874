package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G6, G7: a lane that stood still while others had all the memory goes on when they give it back,
// though it looked at one event of its parked log.
func TestALaneThatStandsStillWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver", func(s *topics.Settings) { s.Retry.TimeToLive = 20 * time.Second })
		y.sender.always(outcome(retry.SocketError)) // 30 s of probation
		wait()
		y.publish("orders", ids("e", 40)...)
		after(5 * time.Second)
		l := y.lane(id)
		again := pending.Delivery{Subscription: id, Source: l.source.id, Published: time.Now(), Alive: time.Now(), Form: schema.EventGridForm, Event: eventOf("again")}
		testkit.Must(t, y.service.Redeliver(t.Context(), []pending.Delivery{again}))
		after(5 * time.Second)
		b := y.service.budget
		b.charge(int(b.total))
		after(30 * time.Second)
		b.release(int(b.total))
		y.sender.always(ok())
		after(24 * time.Hour)
		wantIDs(t, "delivered or given up", append(y.sender.delivered(""), y.dead.ids("")...), append(ids("e", 40), "again"))
		testkit.Equal(t, b.used.Load(), 0, "bytes are in use at the end")
	})
}

// G8: dead letters that cannot be written do not take all workers and all memory.
func TestRefusedDeadLettersTakeAFewWorkersOnly(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver", func(s *topics.Settings) {
			s.Retry.TimeToLive, s.Concurrency, s.Paused = time.Second, 2, true
		})
		wait()
		for range 40 {
			y.publish("orders", ids("e", 500)...)
		}
		y.dead.refuses(errTest)
		after(time.Hour)
		l := y.lane(id)
		l.mu.Lock()
		busy := l.sending.busy
		l.mu.Unlock()
		if busy > 2 {
			t.Errorf("%d workers, want 2 at most", busy)
		}
		y.dead.refuses(nil)
		after(time.Hour)
		if n := len(y.dead.all()); n < 20_000 {
			t.Errorf("%d dead letters, want 20,000", n)
		}
	})
}

// What is due for a subscription whose lane is just being made is found by that lane.
func TestWhatIsDueForALaneThatIsJustBeingMade(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver")
		s := y.service
		l, err := s.lane(id)
		testkit.Must(t, err)
		y.publish("orders", "e")
		wait()
		first := y.sender.all("")
		testkit.MustEqual(t, len(first), 1, "requests")
		s.mu.Lock()
		delete(s.lanes, id)
		s.mu.Unlock()
		s.cfg.Topics = hookedTopics{s.cfg.Topics, func() {
			s.mu.Lock()
			s.lanes[id] = l
			s.mu.Unlock()
		}}
		it := item{}
		it.Subscription, it.Source, it.Attempts, it.Published, it.Alive = id, l.source.id, 1, time.Now(), time.Now()
		it.Form, it.Event, it.LastOutcome = schema.EventGridForm, eventOf("due"), retry.TimedOut
		s.take(t.Context(), []retrylog.Entry{{Delivery: it.Delivery, Done: func() {}}})
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"e", "due"})
	})
}

// hookedTopics does something whenever it is looked at.
type hookedTopics struct {
	Topics
	hook func()
}

func (h hookedTopics) Snapshot() *topics.Snapshot {
	h.hook()
	return h.Topics.Snapshot()
}

// What waits in a parked log is not settled, and may be the oldest.
func TestTheOldestMayBeInTheParkedLog(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 16 })
		y.sender.always(status(503))
		published := time.Now()
		y.publish("orders", ids("e", 10)...)
		after(time.Minute)
		after(4 * time.Minute) // all retries are due, and in the parked log
		st := y.stats(id)
		if len(st.Waiting) != 0 || st.Parked == 0 || st.Behind != 0 {
			t.Fatalf("it is not where it should be: %+v", st)
		}
		if !st.Oldest.Equal(published) {
			t.Errorf("oldest %v, want %v", st.Oldest, published)
		}
	})
}

// Those who wait for memory are woken though others give memory back all the time.
func TestWhoWaitsForMemoryIsNotPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		b := newBudget(1000, c)
		b.charge(1100)
		b.wait(&lane{})
		began := time.Now()
		for time.Since(began) < time.Second {
			b.release(200)
			if who, _ := c.due(time.Now()); who == b {
				return
			}
			b.charge(200)
			b.release(200)
			b.charge(200)
			time.Sleep(feedEvery - time.Microsecond)
			time.Sleep(2 * time.Microsecond) // the timer has fired, its goroutine has not come yet
		}
		t.Error("nobody was woken within a second")
	})
}
