package retrylog

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what all retry logs and parked logs of a node count together: those of shards come and go,
// and a registry takes each counter once. Many goroutines may use them at once.
type Metrics struct {
	put, due, shelved, damaged prometheus.Counter
	// waiting describes how many wait, by the waits of the ladder.
	waiting *prometheus.Desc
	ladder  []time.Duration

	mu      sync.Mutex
	running map[*Logs]bool // guarded by mu
}

// NewMetrics makes the counters and registers them, unless registry is nil. Ladder is that of all logs which
// are to use them.
func NewMetrics(registry prometheus.Registerer, ladder []time.Duration) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "eventyard_grid_" + name, Help: help})
	}
	m := &Metrics{
		put:     counter("retries_put_total", "Events that were put aside to be tried again, since this node started."),
		due:     counter("retries_due_total", "Events put aside that fell due, since this node started."),
		shelved: counter("shelved_total", "Events that fell due and were shelved, since this node started."),
		damaged: counter("retries_damaged_total", "Events put aside that cannot be read any more and were passed."),
		waiting: prometheus.NewDesc("eventyard_grid_retries_waiting", "Events put aside to be tried again, by how long they wait.", []string{"wait"}, nil),
		ladder:  slices.Clone(ladder), running: map[*Logs]bool{},
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.put, m.due, m.shelved, m.damaged, m} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// runs has what waits in logs be counted while they run.
func (m *Metrics) runs(t *Logs, are bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if are {
		m.running[t] = true
	} else {
		delete(m.running, t)
	}
}

// Describe is prometheus.Collector's.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- m.waiting }

// Collect is prometheus.Collector's: what waits in all logs that run here.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	waiting := make([]int64, len(m.ladder))
	m.mu.Lock()
	for t := range m.running {
		for position := range waiting {
			waiting[position] += t.counts.total(position)
		}
	}
	m.mu.Unlock()
	for position, wait := range m.ladder {
		to <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(waiting[position]), wait.String())
	}
}
