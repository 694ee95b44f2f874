package delivery

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/grid/retry"
)

// metrics are the service's own counters. Those of lanes are counted by the lanes and told by a
// collector when somebody asks: nothing is looked up for an event, and what is gone is not
// told any more.
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

// collector tells of lanes.
type collector struct {
	s                                     *Service
	matched, delivered, requests, failed  *prometheus.Desc
	dropped, dead                         *prometheus.Desc
	queued, inFlight, backlog, state, all *prometheus.Desc
}

func newCollector(s *Service) *collector {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("eventyard_grid_"+name, help, append([]string{"topic", "subscription"}, more...), nil)
	}
	return &collector{
		s:         s,
		matched:   desc("matched_events_total", "Events that a subscription's filter let pass."),
		delivered: desc("delivered_events_total", "Events that were delivered."),
		requests:  desc("attempts_total", "Requests that were made, by outcome.", "outcome"),
		failed:    desc("failed_events_total", "Events whose attempt failed, by outcome.", "outcome"),
		dropped:   desc("dropped_events_total", "Events that were given up and had no place to go, by reason.", "reason"),
		dead:      desc("dead_lettered_events_total", "Events that became dead letters, by reason.", "reason"),
		queued:    desc("queued_events", "Events in memory that wait to be sent."),
		inFlight:  desc("in_flight_events", "Events that are being sent, or held by receivers."),
		backlog:   desc("retry_backlog_events", "Events that wait in retry logs."),
		state:     desc("endpoint_state", "Health of the endpoint: 0 healthy, 1 failing, 2 on probation, 3 probing."),
		all:       prometheus.NewDesc("eventyard_grid_subscriptions", "Subscriptions that are being delivered.", nil, nil),
	}
}

// Describe tells what will be collected.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.matched, c.delivered, c.requests, c.failed, c.dropped, c.dead, c.queued, c.inFlight, c.backlog, c.state, c.all,
	} {
		to <- d
	}
}

// Collect tells of all lanes.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	lanes := c.s.allLanes()
	to <- prometheus.MustNewConstMetric(c.all, prometheus.GaugeValue, float64(len(lanes)))
	now := time.Now()
	for _, l := range lanes {
		c.lane(to, l, now)
	}
}

func (c *collector) lane(to chan<- prometheus.Metric, l *lane, now time.Time) {
	st, _, _ := l.stats(now)
	labels := []string{l.source.label, l.termsNow().sub.Name}
	notify := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append(labels[:2:2], more...)...)
	}
	notify(c.matched, prometheus.CounterValue, float64(st.Matched))
	notify(c.delivered, prometheus.CounterValue, float64(st.Delivered))
	for d, counts := range map[*prometheus.Desc]map[string]int64{
		c.requests: st.requests, c.failed: st.Failed, c.dropped: st.Dropped, c.dead: st.DeadLettered,
	} {
		for name, n := range counts {
			notify(d, prometheus.CounterValue, float64(n), name)
		}
	}
	waiting := int64(0)
	for _, w := range c.s.cfg.RetryLogs.Waiting(l.id) {
		waiting += w.Count
	}
	notify(c.queued, prometheus.GaugeValue, float64(st.Queued))
	notify(c.inFlight, prometheus.GaugeValue, float64(st.InFlight))
	notify(c.backlog, prometheus.GaugeValue, float64(waiting))
	notify(c.state, prometheus.GaugeValue, stateNumbers[st.Endpoint.State])
}

var stateNumbers = map[retry.State]float64{retry.Well: 0, retry.Suffering: 1, retry.Waiting: 2, retry.Probing: 3}
