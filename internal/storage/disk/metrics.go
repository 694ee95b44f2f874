package disk

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the engine's, cheap enough for the commit path.
type metrics struct {
	batches, events, bytes, groups prometheus.Counter
	fences, refusals, corruptions  prometheus.Counter
	openSegments                   prometheus.Gauge
	syncSeconds                    prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "eventyard", Subsystem: "disk", Name: name, Help: help})
	}
	m := &metrics{
		batches:     counter("appended_batches_total", "Batches stored."),
		events:      counter("appended_events_total", "Events stored."),
		bytes:       counter("appended_bytes_total", "Bytes of batches written."),
		groups:      counter("commits_total", "Groups of batches that shared a write and a sync."),
		fences:      counter("fenced_total", "Writes or syncs that failed and fenced their partition."),
		refusals:    counter("no_space_total", "Groups of batches refused because storage was full."),
		corruptions: counter("corrupt_total", "Times that damaged bytes were met."),
		openSegments: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "eventyard", Subsystem: "disk", Name: "open_segments", Help: "Segments that are open.",
		}),
		syncSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "eventyard", Subsystem: "disk", Name: "sync_seconds", Help: "How long syncs took.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 16),
		}),
	}
	if r != nil {
		r.MustRegister(m.batches, m.events, m.bytes, m.groups, m.fences, m.refusals, m.corruptions, m.openSegments, m.syncSeconds)
	}
	return m
}
