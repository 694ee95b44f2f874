package server

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/storage"
)

// registerYard registers what belongs to the yard as a whole and to none of its services.
func (y *yard) registerYard() {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "eventyard_build_info", Help: "Which version runs. It is 1.",
		ConstLabels: prometheus.Labels{"version": y.cfg.Version, "go": runtime.Version()},
	})
	build.Set(1)
	y.registerLook("eventyard_ready", "Whether clients are well served by this node: 1, or 0 with the reason at /readyz.", func() (int64, error) {
		if y.ready() != nil {
			return 0, nil
		}
		return 1, nil
	})
	if y.shared() {
		y.registerCluster()
	}
	y.registry.MustRegister(build, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "eventyard_access_refused_total",
		Help: "Keys and tokens that were refused, at every listener and where one signs in.",
	}, func() float64 { return float64(y.access.RefusedCount()) }))
	if spans, counts := y.cfg.Tracer.(spanCounts); counts {
		y.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "eventyard_spans_dropped_total", Help: "Spans that had no room in the queue to the collector. Absent where none are sent.",
		}, func() float64 { return float64(spans.Dropped()) }), prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "eventyard_spans_unsent_total", Help: "Spans that could not be sent to the collector, or that it refused. Absent where none are sent.",
		}, func() float64 { return float64(spans.Unsent()) }))
	}
	if folder := y.storage.DiskFolder; folder != "" {
		y.registerLook("eventyard_disk_free_bytes", "Room left where the data is. Absent where that is on other machines.", func() (int64, error) { free, _, err := storage.Space(folder); return free, err })
		y.registerLook("eventyard_disk_size_bytes", "Size of the file system where the data is. Absent where that is on other machines.", func() (int64, error) { _, size, err := storage.Space(folder); return size, err })
	}
	if y.certs != nil {
		y.registerLook("eventyard_certificate_expiry_timestamp_seconds", "When the certificate that listeners show ends, in seconds since 1970.", func() (int64, error) {
			info, err := y.certs.Info()
			return info.NotAfter.Unix(), err
		})
	}
}

// spanCounts is a tracer that says how many of its spans went nowhere.
type spanCounts interface {
	Dropped() int64 // for want of room
	Unsent() int64
}

// registerLook registers a gauge that is looked at when it is asked for, and not told where that fails.
func (y *yard) registerLook(name, help string, look func() (int64, error)) {
	y.registry.MustRegister(&looked{desc: prometheus.NewDesc(name, help, nil, nil), look: look})
}

// looked is such a gauge.
type looked struct {
	desc *prometheus.Desc
	look func() (int64, error)
}

func (l *looked) Describe(all chan<- *prometheus.Desc) { all <- l.desc }

func (l *looked) Collect(all chan<- prometheus.Metric) {
	if value, err := l.look(); err == nil {
		all <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, float64(value))
	}
}
