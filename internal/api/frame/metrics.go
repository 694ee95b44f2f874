package frame

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count requests and time them. They have the labels of their API: route, method and class
// of status, or operation and status.
type Metrics struct {
	Requests *prometheus.CounterVec
	Seconds  *prometheus.HistogramVec
	byRoute  bool
}

// MetricNames are what an API calls its metrics.
type MetricNames struct{ Requests, RequestsHelp, Seconds, SecondsHelp string }

// NewMetrics makes and registers metrics; byRoute says which labels they have.
func NewMetrics(reg prometheus.Registerer, names MetricNames, byRoute bool) *Metrics {
	counted, timed := []string{"operation", "status"}, []string{"operation"}
	if byRoute {
		counted, timed = []string{"route", "method", "class"}, []string{"route", "method"}
	}
	m := &Metrics{
		Requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: names.Requests, Help: names.RequestsHelp}, counted),
		Seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: names.Seconds, Help: names.SecondsHelp, Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, timed),
		byRoute: byRoute,
	}
	reg.MustRegister(m.Requests, m.Seconds)
	return m
}

// Observe counts a call. One that is long by design is not timed.
func (m *Metrics) Observe(c *Call, took time.Duration) {
	labels := []string{c.Route.Label(), strconv.Itoa(c.status)}
	if m.byRoute {
		labels = []string{c.Route.Label(), knownMethod(c.R.Method), class(c.status)}
	}
	m.Requests.WithLabelValues(labels...).Inc()
	if !c.Route.Long {
		m.Seconds.WithLabelValues(labels[:len(labels)-1]...).Observe(took.Seconds())
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

// class is that of a status; an answer that was never begun is an empty one of 200.
func class(status int) string { return strconv.Itoa(max(status, http.StatusOK)/100) + "xx" }
