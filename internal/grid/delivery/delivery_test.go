package delivery

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1
func TestEveryMatchingSubscriptionGetsEventsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "all-of-them")
		y.subscribe("orders", "only-paid", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"paid"}} })
		wait()
		began := time.Now()
		y.publish("orders", "paid/1", "open/2", "paid/3")
		wait()
		wantIDs(t, "all", y.sender.delivered("all-of-them"), []string{"paid/1", "open/2", "paid/3"})
		wantIDs(t, "paid", y.sender.delivered("only-paid"), []string{"paid/1", "paid/3"})
		for _, d := range y.sender.all("") {
			testkit.Equal(t, d.at, began, "%v was tried after %v", d.ids, d.at.Sub(began))
		}
	})
}

// G5, G6: the whole schedule, to the time to live.
func TestRetriesFollowTheScheduleToTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.config = nil
		y.orders("broken")
		y.sender.always(status(500))
		began := time.Now()
		y.publish("orders", "a")
		after(49 * time.Hour)
		want := []time.Duration{
			0, 10 * time.Second, 40 * time.Second, 100 * time.Second, 400 * time.Second, 1000 * time.Second, 2800 * time.Second,
			6400 * time.Second, 17200 * time.Second, 38800 * time.Second, 82000 * time.Second,
		}
		got := y.sender.all("broken")
		for i, d := range got {
			if i >= len(want) || d.at.Sub(began) != want[i] || d.attempts[0] != i {
				t.Errorf("attempt %d (%d made before) after %v", i+1, d.attempts[0], d.at.Sub(began))
			}
		}
		testkit.Equal(t, len(got), len(want), "attempts")
		y.wantLetter(retry.ReasonAge, 11)
	})
}

func TestStoppingLetsRequestsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.after(4*time.Second, ok())
		y.publish("orders", ids("e", 30)...)
		after(time.Second)
		began := time.Now()
		y.stop()
		testkit.Equal(t, time.Since(began), 3*time.Second, "stopping took")
		testkit.Equal(t, len(y.sender.delivered("")), 16, "were delivered")
		y.start()
		after(20 * time.Second)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		testkit.Equal(t, len(y.sender.delivered("")), 30, "deliveries of 30 events: what ended while stopping was repeated")
	})
}

func TestStoppingCancelsWhatTakesTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.says(func(ctx context.Context, _ drop) webhook.Result {
			<-ctx.Done()
			return outcome(retry.Canceled)
		})
		y.publish("orders", ids("e", 30)...)
		wait()
		began := time.Now()
		y.stop()
		testkit.Equal(t, time.Since(began), 5*time.Second, "stopping took")
		y.sender.always(ok())
		y.start()
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		for _, d := range y.sender.all("") {
			testkit.Equal(t, d.attempts[0], 0, "being cancelled used an attempt: %+v", d)
		}
	})
}

// What fails while the yard stops is stored, or comes again.
func TestFailuresWhileStoppingAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.after(2*time.Second, status(500))
		y.publish("orders", "a")
		after(time.Second)
		y.stop()
		y.sender.always(ok())
		y.start()
		after(9 * time.Second)
		drops := y.sender.all("")
		testkit.Equal(t, len(drops), 1, "requests")
		after(time.Second)
		if drops = y.sender.all(""); len(drops) != 2 || drops[1].attempts[0] != 1 {
			t.Errorf("requests %+v, want a second one", drops)
		}
	})
}

// Started and stopped in a storm.
func TestStartAndStopStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.topic("orders")
		y.subscribe("orders", "receiver")
		y.subscribe("orders", "puller", pulled)
		for i := range 50 {
			y.publish("orders", ids(string(rune('A'+i)), 3)...)
			y.start()
			if i%3 == 0 {
				wait()
			}
			y.stop()
		}
		y.start()
		after(time.Minute)
		if n := len(y.sender.delivered("receiver")); n < 150 {
			t.Errorf("%d of 150 were delivered", n)
		}
		y.stop()
	})
}

type dreamer struct {
	name string
	mu   *sync.Mutex
	log  *[]string
	at   alarm
}

func (d *dreamer) wake(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.log = append(*d.log, fmt.Sprintf("%s %v", d.name, now.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))))
}

func TestTheClockWakesInOrderAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.run(ctx)
		var mu sync.Mutex
		var log []string
		sleepers := map[string]*dreamer{}
		for _, name := range []string{"a", "b", "c", "d"} {
			d := &dreamer{name: name, mu: &mu, log: &log}
			d.at.who = d
			sleepers[name] = d
		}
		now := time.Now()
		c.set(&sleepers["a"].at, now.Add(5*time.Second))
		c.set(&sleepers["b"].at, now.Add(3*time.Second))
		c.set(&sleepers["c"].at, now.Add(4*time.Second))
		c.set(&sleepers["d"].at, now.Add(time.Second))
		c.set(&sleepers["c"].at, time.Time{})          // not any more
		c.set(&sleepers["a"].at, now.Add(time.Second)) // sooner
		c.set(&sleepers["d"].at, now.Add(time.Minute)) // later
		time.Sleep(10 * time.Second)
		synctest.Wait()
		c.set(&sleepers["b"].at, time.Now().Add(-time.Hour)) // at once
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		testkit.Slices(t, log, []string{"a 1s", "b 3s", "b 10s", "d 1m0s"}, "woken")
	})
}
