package handler

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// metrics are what the listener counts. Requests the server counts, and what is published the broker.
type metrics struct {
	delivered *deliveries // by hub
	damage    prometheus.Counter
	throttled prometheus.Counter
}

// newMetrics makes the counters and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer, lives func(broker.Hub) bool) (*metrics, error) {
	m := &metrics{
		delivered: newDeliveries(lives),
		damage: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_kafka_damage_passed_total",
			Help: "Times that a Kafka consumer met stored events that cannot be read, and went on behind them.",
		}),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_kafka_throttled_batches_total",
			Help: "Batches that had to wait because a quota was used up.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.delivered, m.damage, m.throttled} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
