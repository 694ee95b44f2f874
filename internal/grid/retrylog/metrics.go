package retrylog

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of retry logs and parked logs.
type metrics struct {
	put, due, shelved, damaged prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "eventyard_grid_" + name, Help: help})
	}
	return &metrics{
		put:     counter("retries_put_total", "Events that were put aside to be tried again, since this node started."),
		due:     counter("retries_due_total", "Events put aside that fell due, since this node started."),
		shelved: counter("shelved_total", "Events that fell due and were shelved, since this node started."),
		damaged: counter("retries_damaged_total", "Events put aside that cannot be read any more and were passed."),
	}
}

// register makes them known, and how many wait in each retry log; unless registry is nil.
func (m *metrics) register(registry prometheus.Registerer, t *Logs) error {
	if registry == nil {
		return nil
	}
	all := []prometheus.Collector{m.put, m.due, m.shelved, m.damaged}
	for _, r := range t.logs[:len(t.cfg.Ladder)] {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "eventyard_grid_retries_waiting",
			Help:        "Events put aside to be tried again, by how long they wait.",
			ConstLabels: prometheus.Labels{"wait": r.wait.String()},
		}, func() float64 { return float64(t.counts.total(r.position)) }))
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}
