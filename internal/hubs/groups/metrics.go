package groups

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds one collection, and maxSeries how many partitions it tells of: a
// yard with ten thousand groups must not drown who watches it.
const (
	scrapeTimeout = 10 * time.Second
	maxSeries     = 5_000
)

// collector tells of groups when it is asked, so that nothing has to be kept and what is gone
// is not told any more.
type collector struct {
	registry   *Registry
	lagEvents  *prometheus.Desc
	lagSeconds *prometheus.Desc
	owned      *prometheus.Desc
	omitted    *prometheus.Desc
}

func newCollector(k *Registry) *collector {
	partition := []string{"hub", "group", "partition"}
	return &collector{
		registry: k,
		lagEvents: prometheus.NewDesc("eventyard_group_lag_events",
			"Events of a partition behind the checkpoint of a consumer group.", partition, nil),
		lagSeconds: prometheus.NewDesc("eventyard_group_lag_seconds",
			"How long the oldest event behind the checkpoint of a consumer group has been waiting.", partition, nil),
		owned: prometheus.NewDesc("eventyard_group_partitions_owned",
			"Partitions that an instance owns for a consumer group.", []string{"hub", "group", "owner"}, nil),
		omitted: prometheus.NewDesc("eventyard_group_partitions_omitted",
			"Partitions of consumer groups whose lag is not told because there are too many.", nil, nil),
	}
}

// Describe tells what will be collected.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.lagEvents, c.lagSeconds, c.owned, c.omitted} {
		to <- d
	}
}

// Collect tells of all groups that have checkpoints. A group that cannot be read is left
// out: the other metrics must not be lost for it.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	reported, omitted := 0, 0
	for _, hub := range c.registry.broker.Hubs() {
		groups, err := c.registry.used(ctx, hub)
		if err != nil {
			c.registry.log.Warn("the lag of groups cannot be told", "hub", hub.Name, "error", err)
		}
		for _, group := range groups {
			if reported+hub.Partitions > maxSeries {
				omitted += hub.Partitions
				continue
			}
			reported += hub.Partitions
			c.group(ctx, to, hub.Name, group)
		}
	}
	to <- prometheus.MustNewConstMetric(c.omitted, prometheus.GaugeValue, float64(omitted))
}

func (c *collector) group(ctx context.Context, to chan<- prometheus.Metric, hub, group string) {
	t, err := c.registry.Table(ctx, hub, group)
	if err != nil {
		c.registry.log.Warn("the lag of a group cannot be told", "hub", hub, "group", group, "error", err)
		return
	}
	gauge := func(d *prometheus.Desc, value float64, label string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, t.Hub, t.Group, label)
	}
	for _, row := range t.Partitions {
		if row.Lag != nil {
			gauge(c.lagEvents, float64(row.Lag.Events), row.Partition)
			gauge(c.lagSeconds, row.Lag.Oldest.Seconds(), row.Partition)
		}
	}
	for _, i := range t.Instances {
		if i.Partitions > 0 {
			gauge(c.owned, float64(i.Partitions), i.ID)
		}
	}
}
