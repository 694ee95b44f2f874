package eventgrid

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/api/frame"
)

// metrics are what the API counts.
type metrics struct {
	*frame.Metrics
	published *prometheus.CounterVec
}

// stored is the outcome of what was published; others are the finer codes of errors.
const stored = "Stored"

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		Metrics: frame.NewMetrics(reg, frame.MetricNames{
			Requests: "eventyard_grid_requests_total", RequestsHelp: "Requests to the grid's endpoints, by operation and status.",
			Seconds:     "eventyard_grid_http_request_duration_seconds",
			SecondsHelp: "How long requests to the grid's endpoints took, by operation. Long polls are left out.",
		}, false),
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_grid_published_total",
			Help: "Events published to topics, by topic and outcome: Stored, or why not. A publication that was refused before its events were counted counts as one.",
		}, []string{"topic", "outcome"}),
	}
	reg.MustRegister(m.published)
	return m
}
