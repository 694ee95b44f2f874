package handler

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// deliveries counts the events that consumers were sent, by hub. Nobody tells when a hub is deleted, so
// what is gone is looked for whenever the counters are asked for, and when there are many.
type deliveries struct {
	desc *prometheus.Desc
	// lives says whether that very hub is still there.
	lives func(broker.Hub) bool

	mu sync.Mutex
	// byHub has the counters by the hubs' ids: a hub that is made anew begins anew. Guarded by mu.
	byHub map[[16]byte]*delivered
	// room is how many there may be until those that are gone are looked for. Guarded by mu.
	room int
}

type delivered struct {
	hub    broker.Hub
	events float64
}

// minDelivered is how many hubs may be counted before one is looked for that is gone.
const minDelivered = 64

func newDeliveries(lives func(broker.Hub) bool) *deliveries {
	return &deliveries{
		desc: prometheus.NewDesc("eventyard_kafka_delivered_events_total", "Events sent to Kafka's consumers, by hub.",
			[]string{"hub"}, nil),
		lives: lives,
		byHub: make(map[[16]byte]*delivered),
		room:  minDelivered,
	}
}

// add counts events of a hub.
func (d *deliveries) add(hub broker.Hub, events int) {
	if events == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.byHub[hub.ID]
	if one == nil {
		if len(d.byHub) >= d.room {
			d.sweepLocked()
		}
		one = &delivered{hub: hub}
		d.byHub[hub.ID] = one
	}
	one.events += float64(events)
}

// sweepLocked forgets hubs that are gone.
func (d *deliveries) sweepLocked() {
	for id, one := range d.byHub {
		if !d.lives(one.hub) {
			delete(d.byHub, id)
		}
	}
	d.room = max(minDelivered, 2*len(d.byHub))
}

// Describe is a collector's.
func (d *deliveries) Describe(to chan<- *prometheus.Desc) { to <- d.desc }

// Collect is a collector's.
func (d *deliveries) Collect(to chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweepLocked()
	named := make(map[string]bool, len(d.byHub)) // one may have gone, and come anew, since
	for _, one := range d.byHub {
		if !named[one.hub.Name] {
			named[one.hub.Name] = true
			to <- prometheus.MustNewConstMetric(d.desc, prometheus.CounterValue, one.events, one.hub.Name)
		}
	}
}
