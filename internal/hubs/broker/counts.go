package broker

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Counters are what a broker counts, for who tells others of it. All methods may be called by many
// goroutines at once.
type Counters struct {
	metrics *metrics
	hubs    *registry
	keys    *keyWatch
}

// HubCounts is what this node has counted of a hub since it started, or since the hub was created here.
type HubCounts struct {
	Hub string
	// Events and Bytes were published.
	Events, Bytes float64
	// Reads are the events that were given to readers, by group.
	Reads map[string]float64
}

// Counts tells of all hubs. It does no I/O.
func (c *Counters) Counts() []HubCounts {
	all := c.hubs.all()
	counts := make([]HubCounts, 0, len(all))
	reads := c.metrics.readsByHub()
	for _, h := range all {
		counts = append(counts, HubCounts{h.Name, valueOf(h.metrics.events), valueOf(h.metrics.bytes), reads[h.Name]})
	}
	return counts
}

// readsByHub asks the counters, since they are the ones who know which groups there are.
func (m *metrics) readsByHub() map[string]map[string]float64 {
	found := make(chan prometheus.Metric)
	go func() {
		defer close(found)
		m.reads.Collect(found)
	}()
	byHub := make(map[string]map[string]float64)
	for one := range found {
		var d dto.Metric
		if one.Write(&d) != nil {
			continue
		}
		var hub, group string
		for _, l := range d.GetLabel() {
			switch l.GetName() {
			case "hub":
				hub = l.GetValue()
			case "group":
				group = l.GetValue()
			}
		}
		if byHub[hub] == nil {
			byHub[hub] = make(map[string]float64)
		}
		byHub[hub][group] = d.GetCounter().GetValue()
	}
	return byHub
}

func valueOf(c prometheus.Counter) float64 {
	var d dto.Metric
	if c == nil || c.Write(&d) != nil {
		return 0
	}
	return d.GetCounter().GetValue()
}
