package azureblob

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the listener counts.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_blob_requests_total",
			Help: "Requests to the blob endpoint, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "eventyard_blob_request_duration_seconds",
			Help:    "How long requests to the blob endpoint took, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
	}
	reg.MustRegister(m.requests, m.seconds)
	return m
}

func (m *metrics) observe(c *call, took time.Duration) {
	m.requests.WithLabelValues(c.operation, strconv.Itoa(c.status)).Inc()
	m.seconds.WithLabelValues(c.operation).Observe(took.Seconds())
}
