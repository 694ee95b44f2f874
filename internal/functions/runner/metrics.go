package runner

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// scrapeTimeout bounds one collection, and maxSeries how many functions and how many circuits it
// tells of.
const (
	scrapeTimeout = 10 * time.Second
	maxSeries     = 2_000
)

// collector tells of functions and circuits when it is asked, so that what is gone is not told any
// more.
type collector struct {
	registry    *Registry
	recommended *prometheus.Desc
	lag         *prometheus.Desc
	circuit     *prometheus.Desc
	counts      []count
}

// count is one of a host's counters.
type count struct {
	desc *prometheus.Desc
	of   func(functions.Status) int64
}

func newCollector(k *Registry) *collector {
	function := []string{"function"}
	counter := func(name, help string, of func(functions.Status) int64) count {
		return count{prometheus.NewDesc("eventyard_function_"+name, help, function, nil), of}
	}
	return &collector{
		registry: k,
		recommended: prometheus.NewDesc("eventyard_function_recommended_instances",
			"How many instances the events that wait for a function are worth.", function, nil),
		lag: prometheus.NewDesc("eventyard_function_lag_events", "Events that wait for a function.", function, nil),
		circuit: prometheus.NewDesc("eventyard_circuit_state",
			"State of a function's circuit: 0 closed, 1 half-open, 2 open, 3 held by an operator.", []string{"hub", "group", "function"}, nil),
		counts: []count{
			counter("calls_total", "Calls of a function by this node.", func(s functions.Status) int64 { return s.Calls }),
			counter("failed_calls_total", "Calls of a function by this node that failed.", func(s functions.Status) int64 { return s.Failed }),
			counter("timeouts_total", "Calls of a function by this node that took too long.", func(s functions.Status) int64 { return s.Timeouts }),
			counter("panics_total", "Calls of a function by this node that ended in a panic.", func(s functions.Status) int64 { return s.Panics }),
			counter("done_events_total", "Events that a function has handled.", func(s functions.Status) int64 { return s.Done }),
			counter("retried_events_total", "Events that were given to a function again.", func(s functions.Status) int64 { return s.Retried }),
			counter("poisoned_events_total", "Events that used up their retries and were put away.", func(s functions.Status) int64 { return s.Poisoned }),
			counter("skipped_events_total", "Events that a function skipped.", func(s functions.Status) int64 { return s.Skipped }),
			counter("dropped_events_total", "Events that used up their retries and had no place to go.", func(s functions.Status) int64 { return s.Dropped }),
		},
	}
}

// Describe tells what will be collected.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.recommended, c.lag, c.circuit} {
		to <- d
	}
	for _, one := range c.counts {
		to <- one.desc
	}
}

// Collect tells of all. What cannot be read is left out: the other metrics must not be lost for it.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := c.registry.list(ctx, false)
	if err != nil {
		c.registry.log.Warn("functions cannot be measured", "error", err)
	}
	for _, f := range all[:min(len(all), maxSeries)] {
		if f.Lag >= 0 {
			to <- prometheus.MustNewConstMetric(c.lag, prometheus.GaugeValue, float64(f.Lag), f.Name)
			to <- prometheus.MustNewConstMetric(c.recommended, prometheus.GaugeValue, float64(f.Recommended), f.Name)
		}
		for _, one := range c.counts {
			to <- prometheus.MustNewConstMetric(one.desc, prometheus.CounterValue, float64(one.of(f.Counts)), f.Name)
		}
	}
	circuits, _, err := c.registry.gather(ctx)
	if err != nil {
		c.registry.log.Warn("circuits cannot be measured", "error", err)
	}
	for _, one := range circuits[:min(len(circuits), maxSeries)] {
		to <- prometheus.MustNewConstMetric(c.circuit, prometheus.GaugeValue, levels[one.Record.State], one.Hub, one.Group, one.Function)
	}
}

// levels are the states as numbers: the higher, the more somebody is needed.
var levels = map[breaker.State]float64{breaker.HalfOpen: 1, breaker.Open: 2, breaker.Held: 3}
