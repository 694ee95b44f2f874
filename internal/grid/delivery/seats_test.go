package delivery

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// R3: a lane that is deleted, or held, while it waits for a seat does not keep it.
func TestASeatIsNotLostWithItsLane(t *testing.T) {
	crowd(t, 1, func(t *testing.T, y *yard) {
		y.topic("orders")
		for _, name := range []string{"first", "deleted", "paused", "last"} {
			y.subscribe("orders", name, at(name+".example", ""))
		}
		y.sender.after(time.Minute, ok())
		y.publish("orders", "e")
		after(time.Second)
		orders := topics.Source{Topic: "orders"}
		testkit.Must(t, y.topics.Delete(t.Context(), orders, "deleted"))
		testkit.Must(t, testkit.Err(y.topics.Update(t.Context(), orders, "paused", func(s *topics.Settings) error {
			s.Paused = true
			return nil
		})))
		after(time.Hour)
		delivered := y.sender.delivered("")
		testkit.That(t, len(delivered) >= 2 && len(y.sender.delivered("last")) == 1, "delivered are %v", delivered)
	})
}
