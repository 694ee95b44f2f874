package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// metrics are the broker's counters.
type metrics struct {
	hubs       prometheus.Gauge
	partitions prometheus.Gauge
	events     *prometheus.CounterVec // by hub
	bytes      *prometheus.CounterVec // by hub
	failures   *prometheus.CounterVec // by reason
	repeats    prometheus.Counter
	receivers  prometheus.Gauge
}

// hubMetrics are one hub's counters, looked up once and not for each publication.
type hubMetrics struct {
	events, bytes prometheus.Counter
}

// newMetrics makes the counters and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		hubs: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_broker_hubs",
			Help: "Number of hubs.",
		}),
		partitions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_broker_partitions",
			Help: "Number of partitions of all hubs.",
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_broker_published_events_total",
			Help: "Events stored since this node started, by hub.",
		}, []string{"hub"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_broker_published_bytes_total",
			Help: "Bytes of the events stored since this node started, by hub.",
		}, []string{"hub"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventyard_broker_publish_failures_total",
			Help: "Publications that ended in an error, by reason.",
		}, []string{"reason"}),
		repeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_broker_repeated_events_total",
			Help: "Events that producers sent again and that were not stored again.",
		}),
		receivers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_broker_receivers",
			Help: "Number of receivers that have a slot at a partition.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.hubs, m.partitions, m.events, m.bytes, m.failures, m.repeats, m.receivers} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) forHub(name string) hubMetrics {
	return hubMetrics{events: m.events.WithLabelValues(name), bytes: m.bytes.WithLabelValues(name)}
}

// drop ends the series of a hub that is gone.
func (m *metrics) drop(name string) {
	m.events.DeleteLabelValues(name)
	m.bytes.DeleteLabelValues(name)
}

func (m *metrics) count(hubs map[string]*hub) {
	partitions := 0
	for _, h := range hubs {
		partitions += h.Partitions
	}
	m.hubs.Set(float64(len(hubs)))
	m.partitions.Set(float64(partitions))
}

func (h hubMetrics) published(events, bytes int) {
	h.events.Add(float64(events))
	h.bytes.Add(float64(bytes))
}

func (m *metrics) failed(err error) { m.failures.WithLabelValues(failureReason(err)).Inc() }

// failureReason gives the label of a failed publication. The first match counts: an
// error may be several things, and doubt matters more than its cause.
func failureReason(err error) string {
	var missing *NotFoundError
	switch {
	case errors.Is(err, eventlog.ErrUncertain):
		return "uncertain"
	case errors.As(err, &missing):
		return missing.Kind + "_not_found"
	case errors.Is(err, ErrKeyTooLong):
		return "key_too_long"
	case errors.Is(err, ErrInvalidKey):
		return "key_invalid"
	case errors.Is(err, ErrProducerFenced):
		return "producer_fenced"
	case errors.Is(err, ErrOutOfOrder):
		return "out_of_order"
	case errors.Is(err, eventlog.ErrTooLarge):
		return "too_large"
	case errors.Is(err, eventlog.ErrEmptyBatch):
		return "empty"
	case errors.Is(err, eventlog.ErrNoSpace):
		return "no_space"
	case errors.Is(err, eventlog.ErrFenced):
		return "fenced"
	case errors.Is(err, eventlog.ErrRemoved):
		return "removed"
	case errors.Is(err, eventlog.ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	default:
		return "other"
	}
}
