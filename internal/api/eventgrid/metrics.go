package eventgrid

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the listener counts.
type metrics struct {
	published *prometheus.CounterVec
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
}

// stored is the outcome of what was published; others are the finer codes of errors.
const stored = "Stored"

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_grid_published_total",
			Help: "Events published to topics, by topic and outcome: Stored, or why not. A publication that was refused before its events were counted counts as one.",
		}, []string{"topic", "outcome"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_grid_requests_total",
			Help: "Requests to the grid's endpoints, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "eventyard_grid_door_request_duration_seconds",
			Help:    "How long requests to the grid's endpoints took, by operation. Long polls are left out.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
	}
	reg.MustRegister(m.published, m.requests, m.seconds)
	return m
}

func (m *metrics) observe(c *call, took time.Duration) {
	m.requests.WithLabelValues(c.route.name, strconv.Itoa(c.status)).Inc()
	if !c.route.poll {
		m.seconds.WithLabelValues(c.route.name).Observe(took.Seconds())
	}
}

// refused counts a publication that failed. What a client calls a topic is no label: only the
// names of those that exist are.
func (m *metrics) refused(c *call, f *fault) {
	if c.route.need == toPublish {
		m.published.WithLabelValues(c.topic.Name, f.code).Add(float64(max(1, c.events)))
	}
}

// forget drops the counts of a topic that was deleted.
func (m *metrics) forget(topic string) {
	m.published.DeletePartialMatch(prometheus.Labels{"topic": topic})
}
