package delivery

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/grid/retry"
)

// metrics are the service's own counters. Those of lanes are counted by the lanes and collected
// when somebody asks: nothing is looked up for an event, and what is gone is not reported any more.
type metrics struct {
	overtaken, unreadable prometheus.Counter
	took                  prometheus.Histogram
}

// newMetrics makes the counters and registers them, unless registry is nil.
func newMetrics(s *Service, registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		overtaken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_grid_overtaken_events_total",
			Help: "Events that a source removed before every subscription had looked at them.",
		}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_grid_unreadable_events_total",
			Help: "Stored events that could not be understood and were left out.",
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eventyard_grid_request_duration_seconds",
			Help:    "How long requests to endpoints took.",
			Buckets: []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30},
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.overtaken, m.unreadable, m.took, newCollector(s)} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

type collector struct {
	s     *Service
	all   *prometheus.Desc
	lanes map[string]*prometheus.Desc // by name, without eventyard_grid_
}

func newCollector(s *Service) *collector {
	c := &collector{
		s: s, lanes: make(map[string]*prometheus.Desc),
		all: prometheus.NewDesc("eventyard_grid_subscriptions", "Subscriptions that are being delivered.", nil, nil),
	}
	desc := func(name, help string, more ...string) {
		c.lanes[name] = prometheus.NewDesc("eventyard_grid_"+name, help, append([]string{"topic", "subscription"}, more...), nil)
	}
	desc("matched_events_total", "Events that a subscription's filter let pass.")
	desc("delivered_events_total", "Events that were delivered.")
	desc("attempts_total", "Requests that were made, by outcome.", "outcome")
	desc("failed_events_total", "Events whose attempt failed, by outcome.", "outcome")
	desc("dropped_events_total", "Events that were given up and had no place to go, by reason.", "reason")
	desc("dead_lettered_events_total", "Events that became dead letters, by reason.", "reason")
	desc("queued_events", "Events in memory that wait to be sent.")
	desc("in_flight_events", "Events that are being sent, or held by receivers.")
	desc("retry_backlog_events", "Events that wait in retry logs.")
	desc("endpoint_state", "Health of the endpoint: 0 healthy, 1 failing, 2 on probation, 3 probing.")
	return c
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.all
	for _, d := range c.lanes {
		to <- d
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	lanes := c.s.allLanes()
	to <- prometheus.MustNewConstMetric(c.all, prometheus.GaugeValue, float64(len(lanes)))
	now := time.Now()
	for _, l := range lanes {
		st, _, _ := l.stats(now)
		sub := l.termsNow().sub
		source, name := labelOf(sub.Source), sub.Name
		put := func(metric string, kind prometheus.ValueType, value float64, more ...string) {
			to <- prometheus.MustNewConstMetric(c.lanes[metric], kind, value, append([]string{source, name}, more...)...)
		}
		put("matched_events_total", prometheus.CounterValue, float64(st.Matched))
		put("delivered_events_total", prometheus.CounterValue, float64(st.Delivered))
		for metric, counts := range map[string]map[string]int64{
			"attempts_total": st.requests, "failed_events_total": st.Failed,
			"dropped_events_total": st.Dropped, "dead_lettered_events_total": st.DeadLettered,
		} {
			for by, n := range counts {
				put(metric, prometheus.CounterValue, float64(n), by)
			}
		}
		waiting := int64(0)
		for _, w := range l.holding.logs.Waiting(l.id) {
			waiting += w.Count
		}
		put("queued_events", prometheus.GaugeValue, float64(st.Queued))
		put("in_flight_events", prometheus.GaugeValue, float64(st.InFlight))
		put("retry_backlog_events", prometheus.GaugeValue, float64(waiting))
		put("endpoint_state", prometheus.GaugeValue, stateNumbers[st.Endpoint.State])
	}
}

var stateNumbers = map[retry.State]float64{retry.Well: 0, retry.Suffering: 1, retry.Waiting: 2, retry.Probing: 3}
