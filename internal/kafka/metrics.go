package kafka

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metrics are what the server counts. Counters with a label that the hot path moves are looked up once.
type metrics struct {
	connections prometheus.Gauge
	requests    *prometheus.CounterVec // by api
	errors      *prometheus.CounterVec // by api and code
	bytes       *prometheus.CounterVec // by direction
	refused     *prometheus.CounterVec // by reason

	byKey             map[int16]prometheus.Counter
	bytesIn, bytesOut prometheus.Counter
}

// newMetrics makes the metrics and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_kafka_connections",
			Help: "Kafka connections now, those being set up included.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_kafka_requests_total",
			Help: "Kafka requests since the start, by request.",
		}, []string{"api"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_kafka_errors_total",
			Help: "Error codes that Kafka clients were answered with, by request and code.",
		}, []string{"api", "code"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_kafka_bytes_total",
			Help: "Bytes read from and written to Kafka connections, by direction.",
		}, []string{"direction"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_kafka_refused_total",
			Help: "What Kafka clients were refused or cut off for, by reason.",
		}, []string{"reason"}),
		byKey: map[int16]prometheus.Counter{},
	}
	m.bytesIn, m.bytesOut = m.bytes.WithLabelValues("in"), m.bytes.WithLabelValues("out")
	for _, o := range Offered {
		m.byKey[o.Key] = m.requests.WithLabelValues(kmsg.NameForKey(o.Key))
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.connections, m.requests, m.errors, m.bytes, m.refused} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }

// request counts one; only what is offered gets here.
func (m *metrics) request(key int16) { m.byKey[key].Inc() }

// maxCode is beyond all codes that Kafka has, so that labels are few whatever a handler says.
const maxCode = 200

// failed counts an error code, if it is one.
func (m *metrics) failed(key, code int16) {
	switch {
	case code == 0:
		return
	case code < -1 || code > maxCode:
		code = -1
	}
	m.errors.WithLabelValues(kmsg.NameForKey(key), strconv.Itoa(int(code))).Inc()
}
