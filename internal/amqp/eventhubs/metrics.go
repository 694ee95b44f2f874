package eventhubs

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the listener counts. What is published the broker counts, for all listeners.
type metrics struct {
	delivered *prometheus.CounterVec // by hub
	damage    prometheus.Counter
	tokens    *prometheus.CounterVec // by outcome
	abandoned prometheus.Counter
}

// newMetrics makes the counters and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		delivered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_amqp_delivered_events_total",
			Help: "Events sent to receivers, by hub.",
		}, []string{"hub"}),
		damage: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_amqp_damage_passed_total",
			Help: "Times that a receiver met stored events that cannot be read, and went on behind them.",
		}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_amqp_tokens_total",
			Help: "Tokens that clients have put, by outcome: accepted or refused.",
		}, []string{"outcome"}),
		abandoned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_amqp_abandoned_connections_total",
			Help: "Connections closed because they had no rights for too long.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.delivered, m.damage, m.tokens, m.abandoned} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
