package groups

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the coordinator counts.
type metrics struct {
	rebalances prometheus.Counter
	commits    prometheus.Counter
}

// newMetrics makes the counters and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer, c *Coordinator) (*metrics, error) {
	m := &metrics{
		rebalances: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_kafka_group_changes_total",
			Help: "Changes of Kafka groups that were stored: generations that began, assignments, last members that left.",
		}),
		commits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_kafka_offset_commits_total",
			Help: "Commits of offsets by Kafka groups, and by consumers without members, that were stored.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	loaded := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventyard_kafka_groups",
		Help: "Kafka groups in use at this node.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(len(c.all))
	})
	for _, collector := range []prometheus.Collector{m.rebalances, m.commits, loaded, newLags(c)} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
