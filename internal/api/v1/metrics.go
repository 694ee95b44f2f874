package v1

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// unrouted stands for the route of requests that have none.
const unrouted = "none"

// metrics are what the listener counts.
type metrics struct {
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	tails    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_http_requests_total",
			Help: "Requests answered, by route, method and class of status.",
		}, []string{"route", "method", "class"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_http_refused_total",
			Help: "Requests not let in, by reason: the last part of the problem's type.",
		}, []string{"reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "eventyard_http_request_duration_seconds",
			Help:    "How long requests took, by route and method. Long polls and streams are left out.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method"}),
		tails: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_http_tail_readers",
			Help: "Live tails (server-sent events) open now.",
		}),
	}
	reg.MustRegister(m.requests, m.refused, m.seconds, m.tails)
	return m
}

func (m *metrics) observe(rec *recorder, method string, took time.Duration) {
	method = knownMethod(method)
	m.requests.WithLabelValues(rec.route, method, rec.class()).Inc()
	if !rec.stream {
		m.seconds.WithLabelValues(rec.route, method).Observe(took.Seconds())
	}
}

// knownMethod keeps the label's values few: a method is any word a client likes.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// recorder remembers what was answered, for the metrics.
type recorder struct {
	http.ResponseWriter
	route  string
	stream bool
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) class() string {
	status := r.status
	if status == 0 {
		status = http.StatusOK
	}
	return strconv.Itoa(status/100) + "xx"
}

func (d *Handler) showMetrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(d.cfg.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}
