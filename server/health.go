package server

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/storage"
)

// health is what this node knows of itself, for the overview.
func (y *yard) health(context.Context, struct{}) (overview.Node, error) {
	n := overview.Node{Name: y.nodes.Self().ID}
	if folder := y.storage.DiskFolder; folder != "" {
		if free, all, err := storage.Space(folder); err == nil {
			n.Free, n.Total, n.Peer = free, all, y.shared()
		}
	}
	n.Refused, n.Fenced, n.Corrupt = y.figures.engine.count("no_space_total"), y.figures.engine.count("fenced_total"), y.figures.engine.count("corrupt_total")
	if y.certs != nil {
		if info, err := y.certs.Info(); err == nil {
			n.Certificate = info.NotAfter
		}
		if err := y.certs.Unusable(); err != nil {
			n.Unusable = err.Error()
		}
	}
	if s := y.figures.scrub.Load(); s != nil {
		n.Scrub = *s
	}
	n.Lanes, n.Streams = y.illLanes(time.Now()), y.survey.overview()
	return n, nil
}

// maxIllLanes bounds what one node tells of.
const maxIllLanes = 1000

// illLanes are the subscriptions that this node delivers and that are not well.
func (y *yard) illLanes(now time.Time) (ill []overview.Lane) {
	for _, c := range y.delivery.Counts() {
		l := overview.Lane{
			Name: c.Subscription, Topic: c.Source.Topic, DomainTopic: c.Source.DomainTopic, Hub: c.Source.Hub, Waiting: c.Waiting + c.Behind,
			Failures: c.Endpoint.Failures, Last: string(c.Endpoint.Last), Since: c.Endpoint.Since, Until: c.Endpoint.Until,
			Probation: c.Endpoint.State == retry.Waiting || c.Endpoint.State == retry.Probing, Dropped: c.Dropped,
		}
		if c.Dead > 0 {
			key := subscriptionKey(c.Source, c.Subscription)
			key.Of = series.Dead
			for _, v := range y.figures.store.Read(key, overview.DeadWithin, now).Values {
				if v == v {
					l.Dead += int64(v + 0.5)
				}
			}
		}
		if (l.Probation || l.Failures >= overview.FailingAfter || l.Dead > 0 || l.Dropped > 0) && len(ill) < maxIllLanes {
			ill = append(ill, l)
		}
	}
	return ill
}

// Health is documented by v1.Figures.
func (f *figures) Health(ctx context.Context) ([]overview.Node, []string, error) {
	return f.nodes.Ask(ctx, struct{}{})
}

// Members is documented by v1.Figures.
func (f *figures) Members() []overview.Member { return f.members() }

func (y *yard) members() (all []overview.Member) {
	now := time.Now()
	for _, m := range y.nodes.Members() {
		all = append(all, overview.Member{Name: m.ID, Lost: !m.Alive, Quiet: m.Alive && m.Quiet, Seen: now.Add(-m.Unchanged).UTC()})
	}
	return all
}

// engineCounters are those that the storage engine registers, to be asked without asking all others.
type engineCounters struct {
	prometheus.Registerer
	counters map[string]prometheus.Counter // by name, without eventyard_disk_
}

// MustRegister notes what it registers.
func (e *engineCounters) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if counter, ok := c.(prometheus.Counter); ok {
			_, name, _ := strings.Cut(counter.Desc().String(), `fqName: "eventyard_disk_`)
			name, _, _ = strings.Cut(name, `"`)
			e.counters[name] = counter
		}
	}
	e.Registerer.MustRegister(all...)
}

// count is zero for one that the engine does not have.
func (e *engineCounters) count(name string) int64 {
	var d dto.Metric
	if c := e.counters[name]; c == nil || c.Write(&d) != nil {
		return 0
	}
	return int64(d.GetCounter().GetValue())
}
