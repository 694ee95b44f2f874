package amqp

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// metrics are what the server counts. Counters with a label that the hot path moves are
// looked up once.
type metrics struct {
	connections prometheus.Gauge
	sessions    prometheus.Gauge
	links       *prometheus.GaugeVec   // by the peer's role
	messages    *prometheus.CounterVec // by direction
	bytes       *prometheus.CounterVec // by direction
	refused     *prometheus.CounterVec // by reason

	messagesIn, messagesOut prometheus.Counter
	bytesIn, bytesOut       prometheus.Counter
	senders, receivers      prometheus.Gauge
}

// newMetrics makes the metrics and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_amqp_connections",
			Help: "AMQP connections now, those being set up included.",
		}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_amqp_sessions",
			Help: "AMQP sessions now.",
		}),
		links: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eventyard_amqp_links",
			Help: "AMQP links now, by the client's role.",
		}, []string{"role"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_amqp_messages_total",
			Help: "AMQP messages since the start, by direction. A batch counts once.",
		}, []string{"direction"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_amqp_bytes_total",
			Help: "Bytes read from and written to AMQP connections, by direction.",
		}, []string{"direction"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_amqp_refused_total",
			Help: "What AMQP clients were refused or cut off for, by reason.",
		}, []string{"reason"}),
	}
	m.messagesIn, m.messagesOut = m.messages.WithLabelValues("in"), m.messages.WithLabelValues("out")
	m.bytesIn, m.bytesOut = m.bytes.WithLabelValues("in"), m.bytes.WithLabelValues("out")
	m.senders, m.receivers = m.links.WithLabelValues("sender"), m.links.WithLabelValues("receiver")
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.connections, m.sessions, m.links, m.messages, m.bytes, m.refused} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }

func (m *metrics) linksOf(role wire.Role) prometheus.Gauge {
	if role == wire.RoleSender {
		return m.senders
	}
	return m.receivers
}
