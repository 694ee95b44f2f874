package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/api/peer"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/series"
)

// figures are what all nodes have counted: each has the series of its own in memory, and any of them asks
// the others.
type figures struct {
	store   *series.Store
	sampler *series.Sampler
	series  *peer.Gathering[seriesQuestion, []series.Points]
	nodes   *peer.Gathering[struct{}, overview.Node]
	members func() []overview.Member
	engine  *engineCounters
	keys    *keys
	// scrub is the last that this node has made of the NATS servers.
	scrub atomic.Pointer[overview.Scrub]
}

// seriesQuestion is for series that one need covers.
type seriesQuestion struct {
	Keys []series.Key  `json:"keys"`
	Span time.Duration `json:"span"` // zero: the present values
}

// maxSeriesKeys bounds what another node may ask for at once.
const maxSeriesKeys = 2 * series.MaxSeries

// openFigures begins with what the yard has counted, which is nothing yet.
func (y *yard) openFigures() {
	f := y.figures
	f.store, f.members = series.NewStore(series.MaxSeries), y.members
	lags := &lagSource{groups: y.groups, store: f.store}
	f.sampler = &series.Sampler{Store: f.store, Sources: []series.Source{y.sampleHubs, y.sampleGrid, y.sampleFunctions, lags.sample}}
	judge := peer.Judge{Access: y.access, Topics: y.topics}
	f.series = peer.NewGathering(y.nodes, judge, "series.read",
		func(q seriesQuestion) (frame.Need, auth.Entity) { return frame.SeriesNeed(q.Keys...) }, f.readHere)
	f.keys = y.newKeys(judge)
	f.nodes = peer.NewGathering(y.nodes, judge, "overview.health",
		func(struct{}) (frame.Need, auth.Entity) { return frame.Of(frame.Namespace, auth.Manage), auth.Entity{} }, y.health)
}

func (f *figures) readHere(_ context.Context, q seriesQuestion) ([]series.Points, error) {
	if len(q.Keys) > maxSeriesKeys {
		return nil, fmt.Errorf("%d series are asked for, and %d are the most", len(q.Keys), maxSeriesKeys)
	}
	now, all := time.Now(), make([]series.Points, len(q.Keys))
	if q.Span == 0 {
		for i, v := range f.store.Now(q.Keys, now) {
			all[i] = series.Points{Step: time.Second, Values: []float32{v}}
		}
		return all, nil
	}
	for i, key := range q.Keys {
		all[i] = f.store.Read(key, min(max(q.Span, time.Second), series.MaxSpan), now)
	}
	return all, nil
}

// Series is documented by v1.Figures.
func (f *figures) Series(ctx context.Context, keys []series.Key, span time.Duration) ([]series.Points, []string, error) {
	answers, missing, err := f.series.Ask(ctx, seriesQuestion{keys, span})
	if err != nil {
		return nil, nil, err
	}
	all := make([]series.Points, len(keys))
	for i, key := range keys {
		form, _ := series.FormOf(key.Of)
		var parts []series.Points
		for _, a := range answers {
			if len(a) == len(keys) {
				parts = append(parts, a[i])
			}
		}
		all[i] = series.Merge(form, parts...)
	}
	return all, missing, nil
}

// Now is documented by v1.Figures.
func (f *figures) Now(ctx context.Context, keys []series.Key) (values []float32, missing []string, err error) {
	points, missing, err := f.Series(ctx, keys, 0)
	for _, p := range points {
		values = append(values, p.Values[0])
	}
	return values, missing, err
}

func (y *yard) sampleHubs(_ context.Context, _ time.Time, add func(series.Key, float64)) {
	for _, h := range y.broker.Counts() {
		add(series.Key{Of: series.Published, Hub: h.Hub}, h.Events)
		add(series.Key{Of: series.Bytes, Hub: h.Hub}, h.Bytes)
		for group, n := range h.Reads {
			add(series.Key{Of: series.Read, Hub: h.Hub, Group: group}, n)
		}
	}
}

func (y *yard) sampleGrid(_ context.Context, _ time.Time, add func(series.Key, float64)) {
	for topic, n := range y.topics.Published() {
		add(series.Key{Of: series.Published, Topic: topic}, float64(n))
	}
	for _, c := range y.delivery.Counts() {
		key := subscriptionKey(c.Source, c.Subscription)
		for _, sample := range [...]struct {
			of series.Of
			n  int64
		}{{series.Delivered, c.Delivered}, {series.Failed, c.Failed}, {series.Dead, c.Dead}, {series.Waiting, c.Waiting + c.Behind}} {
			key.Of = sample.of
			add(key, float64(sample.n))
		}
	}
}

// subscriptionKey names the series of a subscription.
func subscriptionKey(source topics.Source, name string) series.Key {
	key := series.Key{Hub: source.Hub, Topic: source.Topic, Subscription: name}
	if source.DomainTopic != "" {
		key.Topic += ":" + source.DomainTopic
	}
	return key
}

func (y *yard) sampleFunctions(_ context.Context, _ time.Time, add func(series.Key, float64)) {
	for _, f := range y.runner.Counts() {
		add(series.Key{Of: series.Calls, Function: f.Function}, float64(f.Calls))
		add(series.Key{Of: series.FailedCalls, Function: f.Function}, float64(f.Failed))
	}
}

// How often the lag of groups is looked at: it costs reading checkpoints. While somebody looks at it each
// second, and never for more than a twentieth of the time.
const (
	lagEvery     = 10 * time.Second
	lagPatience  = 5 * time.Second
	lagShare     = 20
	lagPartition = 5_000 // of all groups; those beyond have no series
)

// lagSource looks at groups, and tells what it saw last in between. One goroutine calls it.
type lagSource struct {
	groups *groups.Registry
	store  *series.Store
	seen   []groups.GroupLag
	next   time.Time
}

func (l *lagSource) sample(ctx context.Context, now time.Time, add func(series.Key, float64)) {
	every := lagEvery
	if l.store.Asked(series.Lag, now) || l.store.Asked(series.LagSeconds, now) {
		every = time.Second
	}
	if now.Add(every).Before(l.next) {
		l.next = now // somebody has come to look
	}
	if !now.Before(l.next) {
		l.look(ctx)
		l.next = now.Add(max(every, lagShare*time.Since(now))).Truncate(time.Second)
	}
	for _, g := range l.seen {
		add(series.Key{Of: series.Lag, Hub: g.Hub, Group: g.Group}, float64(g.Events))
		add(series.Key{Of: series.LagSeconds, Hub: g.Hub, Group: g.Group}, g.Oldest.Seconds())
	}
}

func (l *lagSource) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	l.seen, _ = l.groups.Lags(ctx, func(string) bool { return true }, lagPartition)
}
