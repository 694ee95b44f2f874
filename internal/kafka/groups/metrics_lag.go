package groups

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds one collection, and maxSeries how many partitions it tells of.
const (
	scrapeTimeout = 10 * time.Second
	maxSeries     = 5_000
)

// lags tells how far groups are behind when it is asked, so that nothing has to be kept and what is gone is not told
// any more. Of several nodes each tells of the groups that it coordinates.
type lags struct {
	coordinator *Coordinator
	events      *prometheus.Desc
	seconds     *prometheus.Desc
	members     *prometheus.Desc
	omitted     *prometheus.Desc
}

func newLags(c *Coordinator) *lags {
	partition := []string{"hub", "group", "partition"}
	return &lags{
		coordinator: c,
		events: prometheus.NewDesc("eventyard_kafka_group_lag_events",
			"Events of a partition behind what a Kafka group has committed, told by the node that coordinates it.", partition, nil),
		seconds: prometheus.NewDesc("eventyard_kafka_group_lag_seconds",
			"How long the oldest event behind what a Kafka group has committed has been waiting.", partition, nil),
		members: prometheus.NewDesc("eventyard_kafka_group_members",
			"Members of a Kafka group, told by the node that coordinates it.", []string{"group"}, nil),
		omitted: prometheus.NewDesc("eventyard_kafka_group_partitions_omitted",
			"Partitions of Kafka groups whose lag is not told because there are too many, or the group's id is no text.", nil, nil),
	}
}

func (l *lags) operator() Operator { return Operator{l.coordinator} }

// Describe tells what will be collected.
func (l *lags) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.events, l.seconds, l.members, l.omitted} {
		to <- d
	}
}

// Collect tells of all groups of this node. What cannot be read is left out: the other metrics must not be lost for it.
func (l *lags) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := l.coordinator.List(ctx)
	if err != nil {
		l.coordinator.cfg.Log.Warn("the lag of Kafka groups cannot be told", "error", err)
	}
	reported, omitted := 0, 0
	for _, d := range all {
		for _, hub := range l.operator().Hubs(d) {
			h, err := l.coordinator.cfg.Broker.Hub(hub)
			if err != nil {
				continue // deleted just now
			}
			if reported+h.Partitions > maxSeries || !utf8.ValidString(d.ID) {
				omitted += h.Partitions
				continue
			}
			reported += h.Partitions
			l.hub(ctx, to, d, hub)
		}
		if utf8.ValidString(d.ID) {
			to <- prometheus.MustNewConstMetric(l.members, prometheus.GaugeValue, float64(len(d.Members)), d.ID)
		}
	}
	to <- prometheus.MustNewConstMetric(l.omitted, prometheus.GaugeValue, float64(omitted))
}

func (l *lags) hub(ctx context.Context, to chan<- prometheus.Metric, d Description, hub string) {
	rows, err := l.operator().Rows(ctx, d, hub)
	if err != nil {
		l.coordinator.cfg.Log.Warn("the lag of a Kafka group cannot be told", "hub", hub, "group", d.ID, "error", err)
		return
	}
	for _, row := range rows {
		if row.Lag != nil {
			labels := []string{row.Hub, d.ID, strconv.Itoa(int(row.Partition))}
			to <- prometheus.MustNewConstMetric(l.events, prometheus.GaugeValue, float64(row.Lag.Events), labels...)
			to <- prometheus.MustNewConstMetric(l.seconds, prometheus.GaugeValue, row.Lag.Oldest.Seconds(), labels...)
		}
	}
}
