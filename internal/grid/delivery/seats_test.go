package delivery

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// crowd runs a test in virtual time, with a yard of so many workers.
func crowd(t *testing.T, workers int, test func(t *testing.T, y *yard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.config = func(c *Config) { c.Workers = workers }
		y.start()
		test(t, y)
		testkit.Equal(t, y.service.seats.share.Open(), 0, "seats that are taken at the end")
		y.stop()
	})
}

// at has a subscription send to a path of a server.
func at(server, name string) func(*topics.Settings) {
	return func(s *topics.Settings) { s.Webhook = &egress.Endpoint{URL: "http://" + server + "/" + name} }
}

// R3: however many lanes there are that an event goes to, there are so many workers at once; a server that
// hangs has half of them, another gets its event at once, and in the end all have it.
func TestWorkersOfManyLanes(t *testing.T) {
	crowd(t, 4, func(t *testing.T, y *yard) {
		y.topic("orders")
		for i := range 20 {
			name := fmt.Sprintf("hangs-%d", i)
			y.subscribe("orders", name, at("hangs.example", name))
		}
		y.subscribe("orders", "well", at("well.example", ""))
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if strings.HasPrefix(d.sub, "hangs") {
				time.Sleep(time.Minute)
			}
			return ok()
		})
		y.publish("orders", "e")
		after(time.Second)
		wantIDs(t, "delivered by the server that is well", y.sender.delivered("well"), []string{"e"})
		testkit.Equal(t, y.service.seats.share.Open(), 2, "workers for the server that hangs")
		after(time.Hour)
		testkit.Equal(t, len(y.sender.delivered("")), 21, "deliveries")
		_, most := y.sender.underWay()
		testkit.That(t, most <= 4, "%d requests at once", most)
	})
}

// R3: a lane with much to send gives its worker's seat up where another lane waits.
func TestWorkersTakeTurns(t *testing.T) {
	crowd(t, 1, func(t *testing.T, y *yard) {
		y.topic("many")
		y.topic("one")
		y.subscribe("many", "busy", at("busy.example", ""))
		y.subscribe("one", "calm", at("calm.example", ""))
		y.sender.after(time.Second, ok())
		y.publish("many", ids("e", 100)...)
		after(10 * time.Second)
		y.publish("one", "o")
		after(3 * time.Second)
		wantIDs(t, "delivered of the calm topic", y.sender.delivered("calm"), []string{"o"})
		after(time.Hour)
		testkit.Equal(t, len(y.sender.delivered("busy")), 100, "delivered of the busy topic")
	})
}

// R3: a lane that is deleted, or held, while it waits for a seat gets nothing, and does not keep the seat.
func TestASeatIsNotLostWithItsLane(t *testing.T) {
	crowd(t, 1, func(t *testing.T, y *yard) {
		y.topic("before")
		y.topic("orders")
		y.subscribe("before", "first", at("first.example", ""))
		for _, name := range []string{"deleted", "paused", "last"} {
			y.subscribe("orders", name, at(name+".example", ""))
		}
		y.sender.after(time.Minute, ok())
		y.publish("before", "e")
		after(time.Second)
		y.publish("orders", "e")
		after(time.Second)
		testkit.Equal(t, y.service.seats.share.Waiting(), 3, "lanes that wait")
		y.unsubscribe("orders", "deleted")
		y.change("orders", "paused", func(s *topics.Settings) { s.Paused = true })
		after(time.Second)
		testkit.Equal(t, y.service.seats.share.Waiting(), 1, "lanes that wait when two need nothing any more")
		after(time.Hour)
		for name, want := range map[string]int{"first": 1, "deleted": 0, "paused": 0, "last": 1} {
			testkit.Equal(t, len(y.sender.delivered(name)), want, "delivered to %s", name)
		}
	})
}

// hangs answers those whose name begins so after a while, and others after a second. It gives, for each of these, how
// many workers have sent to it.
func (y *yard) hangs(d time.Duration) func(sub string) int {
	var mu sync.Mutex
	workers := map[string]map[string]bool{}
	y.sender.says(func(_ context.Context, x drop) webhook.Result {
		if strings.HasPrefix(x.sub, "hangs") {
			time.Sleep(d)
			return outcome(retry.TimedOut)
		}
		worker, _, _ := strings.Cut(string(debug.Stack()), " [") // goroutine N
		mu.Lock()
		if workers[x.sub] == nil {
			workers[x.sub] = map[string]bool{}
		}
		workers[x.sub][worker] = true
		mu.Unlock()
		time.Sleep(time.Second)
		return ok()
	})
	return func(sub string) int {
		mu.Lock()
		defer mu.Unlock()
		return len(workers[sub])
	}
}

// R3: a lane that waits for a seat to send to a server that hangs, and is given another address, goes on there at once.
func TestALaneIsMovedFromAServerThatHangs(t *testing.T) {
	crowd(t, 4, func(t *testing.T, y *yard) {
		y.topic("others")
		y.topic("orders")
		for i := range 20 {
			name := fmt.Sprintf("hangs-%d", i)
			y.subscribe("others", name, at("hangs.example", name))
		}
		id := y.subscribe("orders", "moved", at("hangs.example", "moved"))
		y.hangs(time.Minute)
		y.publish("others", "e")
		after(time.Second)
		y.publish("orders", "e")
		after(time.Second)
		testkit.That(t, y.lane(id).sending.turn != nil, "it does not wait")
		y.change("orders", "moved", func(s *topics.Settings) { at("well.example", "")(s) })
		after(2 * time.Second)
		wantIDs(t, "delivered at the new address", y.sender.delivered("moved"), []string{"e"})
		for i := range 20 {
			y.unsubscribe("others", fmt.Sprintf("hangs-%d", i))
		}
		after(time.Hour)
	})
}

// R3, G7: a worker keeps its seat where only lanes of a server that hangs wait, for whom it would be of no use; lanes of
// its own server still take turns with it.
func TestAWorkerKeepsItsSeatBesideAServerThatHangs(t *testing.T) {
	crowd(t, 4, func(t *testing.T, y *yard) {
		for _, topic := range []string{"others", "many", "one"} {
			y.topic(topic)
		}
		for i := range 20 {
			name := fmt.Sprintf("hangs-%d", i)
			y.subscribe("others", name, at("hangs.example", name))
		}
		y.subscribe("many", "busy", at("well.example", "busy"))
		y.subscribe("one", "calm", at("well.example", "calm"))
		workers := y.hangs(time.Hour)
		y.publish("others", "e")
		after(time.Second)
		y.publish("many", ids("e", 100)...)
		after(20*time.Second + time.Second/2)
		testkit.Equal(t, len(y.sender.delivered("busy")), 20, "delivered of the busy topic")
		testkit.Equal(t, workers("busy"), 1, "workers that have sent them, one after another")
		y.publish("one", "o")
		after(3 * time.Second)
		wantIDs(t, "delivered of the calm topic", y.sender.delivered("calm"), []string{"o"})
		for i := range 20 {
			y.unsubscribe("others", fmt.Sprintf("hangs-%d", i))
		}
		after(2 * time.Hour)
		testkit.Equal(t, len(y.sender.delivered("busy")), 100, "delivered of the busy topic")
	})
}

// R3, G7: more servers than there are seats, each of which hangs, have at most half when they are on probation: a healthy
// lane does not wait for them.
func TestDeadServersLeaveSeats(t *testing.T) {
	const dead = 20
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.config = func(c *Config) {
			c.Workers, c.Probation = 4, retry.Probation{After: 1, Waits: map[retry.Outcome]time.Duration{retry.TimedOut: time.Second}, Cap: time.Second}
		}
		y.start()
		y.topic("others")
		y.topic("orders")
		for i := range dead {
			y.subscribe("others", fmt.Sprintf("hangs-%d", i))
		}
		y.subscribe("orders", "well")
		y.hangs(time.Minute)
		y.publish("others", "e")
		after(10 * time.Minute) // all are on probation
		_, most := y.sender.underWay()
		testkit.Equal(t, most, 4, "requests at once before they were")
		for n := range 30 {
			testkit.Equal(t, y.service.seats.share.Open(), 2, "seats for probes")
			testkit.That(t, y.service.seats.share.Waiting() > 4, "few wait")
			y.publish("orders", fmt.Sprint(n))
			after(2 * time.Second)
			testkit.MustEqual(t, len(y.sender.delivered("well")), n+1, "delivered 2 s after it was published")
			after(7 * time.Second)
		}
		for i := range dead {
			y.unsubscribe("others", fmt.Sprintf("hangs-%d", i))
		}
		after(time.Hour)
		testkit.Equal(t, y.service.seats.share.Open(), 0, "seats that are taken at the end")
		y.stop()
	})
}
