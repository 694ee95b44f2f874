package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/quota"
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
	reads      *prometheus.CounterVec // by hub and group
}

// hubMetrics are one hub's counters, looked up once and not for each publication.
type hubMetrics struct {
	events, bytes prometheus.Counter
}

// newMetrics makes the counters and registers them, unless registry is nil.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	const prefix = "eventyard_broker_"
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	counters := func(name, label, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, append([]string{label}, more...))
	}
	m := &metrics{
		hubs:       gauge("hubs", "Number of hubs."),
		partitions: gauge("partitions", "Number of partitions of all hubs."),
		events:     counters("published_events_total", "hub", "Events stored since this node started, by hub."),
		bytes:      counters("published_bytes_total", "hub", "Bytes of the events stored since this node started, by hub."),
		failures:   counters("publish_failures_total", "reason", "Publications that ended in an error, by reason."),
		repeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "repeated_events_total", Help: "Events that producers sent again and that were not stored again.",
		}),
		receivers: gauge("receivers", "Number of receivers that have a slot at a partition."),
		reads:     counters("read_events_total", "hub", "Events given to readers by this node since it started, by hub and consumer group, over whichever protocol.", "group"),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.hubs, m.partitions, m.events, m.bytes, m.failures, m.repeats, m.receivers, m.reads} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// drop ends the series of a hub that is gone.
func (m *metrics) drop(name string) {
	m.events.DeleteLabelValues(name)
	m.bytes.DeleteLabelValues(name)
	m.reads.DeletePartialMatch(prometheus.Labels{"hub": name})
}

// Reads counts the events that a group of a hub is given. Who reads asks for it once, and adds what
// it has given to its client: what the yard reads for itself, such as to tell a lag, is not counted.
// Of a hub that is unknown, or gone, nobody hears.
func (c *Counters) Reads(hub, group string) prometheus.Counter {
	h := c.hubs.find(hub)
	if h == nil {
		return prometheus.NewCounter(prometheus.CounterOpts{})
	}
	if isDefaultGroup(group) {
		group = DefaultGroup
	}
	return c.metrics.reads.WithLabelValues(h.Name, group)
}

func (h hubMetrics) published(events, bytes int) {
	h.events.Add(float64(events))
	h.bytes.Add(float64(bytes))
}

func (m *metrics) failed(err error) { m.failures.WithLabelValues(failureReason(err)).Inc() }

// failureReason gives the label of a failed publication. The first match counts: an
// error may be several things, and doubt matters more than its cause.
func failureReason(err error) string {
	if errors.Is(err, eventlog.ErrUncertain) {
		return "uncertain"
	}
	if missing, ok := errors.AsType[*NotFoundError](err); ok {
		return missing.Kind + "_not_found"
	}
	if _, ok := errors.AsType[*quota.Error](err); ok {
		return "throttled"
	}
	for _, f := range failureReasons {
		if errors.Is(err, f.err) {
			return f.reason
		}
	}
	return "other"
}

var failureReasons = []struct {
	err    error
	reason string
}{
	{ErrKeyTooLong, "key_too_long"},
	{ErrInvalidKey, "key_invalid"},
	{ErrProducerFenced, "producer_fenced"},
	{ErrOutOfOrder, "out_of_order"},
	{eventlog.ErrForm, "form"},
	{eventlog.ErrTooLarge, "too_large"},
	{eventlog.ErrEmptyBatch, "empty"},
	{eventlog.ErrNoSpace, "no_space"},
	{eventlog.ErrUnavailable, "unavailable"},
	{eventlog.ErrFenced, "fenced"},
	{eventlog.ErrRemoved, "removed"},
	{eventlog.ErrClosed, "closed"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "canceled"},
}
