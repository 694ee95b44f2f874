package handler

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: what is counted of a hub ends with it.
func TestMetricsEndWithTheirHub(t *testing.T) {
	const name = "eventyard_kafka_delivered_events_total"
	y := newYard(t)
	c := y.client()
	for range 2 {
		hub := y.hub("orders", 1)
		c.produce(hub, 0, values("a", "b"))
		wantRecords(t, c.fetch(hub, 0, 0), "0:a", "1:b")
		testkit.Eventually(t, "2 events are delivered", func() bool { return y.metric(name) == 2 })
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		testkit.Equal(t, y.metric(name), 0, "events of a hub that is gone")
	}
}

// K6: nobody has to ask for the counters of hubs that are gone to be forgotten.
func TestHubsThatAreGoneAreNotCounted(t *testing.T) {
	d := newDeliveries(func(hub broker.Hub) bool { return hub.Name == "orders" })
	for i := range 10 * minDelivered {
		d.add(broker.Hub{ID: [16]byte{1: byte(i), 2: byte(i >> 8)}, Name: fmt.Sprint(i)}, 1)
		d.add(broker.Hub{ID: [16]byte{1}, Name: "orders"}, 1)
		testkit.That(t, len(d.byHub) <= minDelivered, "%d are counted", len(d.byHub))
	}
	testkit.Equal(t, d.byHub[[16]byte{1}].events, 10*minDelivered, "events of the one that is not gone")
}
