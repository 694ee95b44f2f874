package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what the API counts.
type metrics struct {
	*frame.Metrics
	refused *prometheus.CounterVec
	tails   prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		Metrics: frame.NewMetrics(reg, frame.MetricNames{
			Requests: "eventyard_http_requests_total", RequestsHelp: "Requests answered, by route, method and class of status.",
			Seconds:     "eventyard_http_request_duration_seconds",
			SecondsHelp: "How long requests took, by route and method. Long polls and streams are left out.",
		}, true),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_http_refused_total",
			Help: "Requests not let in, by reason: the last part of the problem's type.",
		}, []string{"reason"}),
		tails: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_http_tail_readers",
			Help: "Live tails (server-sent events) open now.",
		}),
	}
	reg.MustRegister(m.refused, m.tails)
	return m
}

func (d *Handler) showMetrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(d.cfg.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}
