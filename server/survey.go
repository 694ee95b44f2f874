package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage"
)

// How often the servers are asked how they keep the yard's streams while somebody wants to know, how long that may
// take, and for how long an answer is told: longer than programs wait from one scrape to the next.
const (
	surveyEvery = 30 * time.Second
	surveyTime  = 20 * time.Second
	surveyKept  = 5 * time.Minute
)

// survey knows how the shards and streams of several nodes are, for metrics and for the overview. Finding out costs
// the servers an answer for each stream: so the node that is first by name does it for all, while somebody asks,
// and who asks gets what is known and waits for nobody.
type survey struct {
	first func() bool // this node is the one that asks
	// unheld counts the shards that nobody holds, and servers finds out how the servers are; nil: there is nothing to
	// find out. hubOf names the hub that has a log.
	unheld  func(context.Context) (int, error)
	servers func(context.Context) storage.Servers
	hubOf   func(log string) string
	wanted  chan struct{} // has room for one
	failed  prometheus.Counter

	mu      sync.Mutex
	shards  known[int]             // guarded by mu
	streams known[storage.Streams] // guarded by mu
	led     known[bool]            // the servers have told of the streams, which takes a leader of all; guarded by mu
	lost    known[[]string]        // in words; guarded by mu
}

// known is something with when it was found out.
type known[T any] struct {
	is T
	at time.Time
}

func (k known[T]) fresh(now time.Time) bool { return !k.at.IsZero() && now.Sub(k.at) <= surveyKept }

// newSurvey is that of this yard; where it has one node there is nothing to find out.
func (y *yard) newSurvey() *survey {
	s := &survey{
		first: func() bool { return y.nodes.Live()[0] == y.nodes.Self() }, servers: y.storage.Servers,
		hubOf: func(log string) string { return broker.HubOf(y.broker, log) }, wanted: make(chan struct{}, 1),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_cluster_surveys_failed_total", Help: "Times that this node could not find out how the shards and streams of the yard are.",
		}),
	}
	if y.grid.placement != nil {
		s.unheld = y.unheldShards
	}
	return s
}

// unheldShards counts those of the grid that no node holds that lives.
func (y *yard) unheldShards(ctx context.Context) (int, error) {
	shares, err := y.grid.placement.Shares(ctx)
	if err != nil {
		return 0, err
	}
	held := 0
	for _, node := range y.nodes.Live() {
		held += shares[nodeText(node)]
	}
	return shards.Count - held, nil
}

// run finds out what somebody wants to know, until ctx ends.
func (s *survey) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wanted:
		}
		s.ask(ctx)
		if sleep.For(ctx, surveyEvery, nil) != nil {
			return nil
		}
	}
}

// want has run find out, if it is for this node to do so. It waits for nothing.
func (s *survey) want() bool {
	if !s.first() {
		return false
	}
	select {
	case s.wanted <- struct{}{}:
	default: // it is about to
	}
	return true
}

// ask finds out; what it cannot stays as it was, until that is too old to be told.
func (s *survey) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	failed := false
	if s.unheld != nil {
		n, err := s.unheld(ctx)
		failed = keep(s, &s.shards, n, err)
	}
	if s.servers != nil {
		found := s.servers(ctx)
		failed = keep(s, &s.streams, found.Streams, found.Err) || failed
		keep(s, &s.led, found.Err == nil, nil)
		failed = keep(s, &s.lost, s.lostOf(found.Lost), found.LostErr) || failed
	}
	if failed {
		s.failed.Inc()
	}
}

func keep[T any](s *survey, in *known[T], is T, err error) (failed bool) {
	if err != nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*in = known[T]{is, time.Now()}
	return false
}

// lostOf names lost streams by the hubs that had them, or by their logs.
func (s *survey) lostOf(lost map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		log := lost[name]
		of := " of log " + log
		if hub := s.hubOf(log); hub != "" {
			of = " of hub " + hub
		}
		all = append(all, name+of)
	}
	return all
}

// overview is what the overview tells of the streams; nil: nothing is known here.
func (s *survey) overview() *overview.Streams {
	if s.servers == nil || !s.want() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all overview.Streams
	now := time.Now()
	if s.lost.fresh(now) && len(s.lost.is) > 0 {
		all.Lost, all.FirstLost = len(s.lost.is), s.lost.is[0]
	}
	if s.streams.fresh(now) {
		all.Leaderless = s.streams.is.Leaderless
	}
	return &all
}

// clusterMetrics shows nodes, and what the survey knows, to Prometheus.
type clusterMetrics struct {
	*survey
	members func() []cluster.Member
	nodes   *prometheus.Desc
	figures []surveyFigure
}

// surveyFigure is one of what the survey knows.
type surveyFigure struct {
	desc *prometheus.Desc
	of   func(s *survey, now time.Time) (n int, fresh bool)
}

// registerCluster registers what several nodes have beside what one has.
func (y *yard) registerCluster() {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("eventyard_cluster_"+name, help, labels, nil)
	}
	m := &clusterMetrics{survey: y.survey, members: y.nodes.Members, nodes: describe("nodes",
		"Nodes of the yard as this one sees them, by state: live, quiet (it cannot show that it lives) or lost.", "state")}
	add := func(name, help string, of func(s *survey, now time.Time) (int, bool)) {
		m.figures = append(m.figures, surveyFigure{describe(name, help+" Told by the node that is first by name."), of})
	}
	ofStreams := func(name, help string, of func(storage.Streams) int) {
		add(name, help, func(s *survey, now time.Time) (int, bool) { return of(s.streams.is), s.streams.fresh(now) })
	}
	add("unheld_shards", "Shards of the grid that no live node holds.", func(s *survey, now time.Time) (int, bool) { return s.shards.is, s.shards.fresh(now) })
	add("lost_streams", "Streams that logs have and that are not there: what they held is gone.",
		func(s *survey, now time.Time) (int, bool) { return len(s.lost.is), s.lost.fresh(now) })
	ofStreams("streams", "Streams that the servers keep for the yard.", func(s storage.Streams) int { return s.Count })
	ofStreams("leaderless_streams", "Streams that have no leader, or that nobody answers for: nothing can be stored in them.",
		func(s storage.Streams) int { return s.Leaderless })
	ofStreams("offline_streams", "Streams with a replica whose server is away.", func(s storage.Streams) int { return s.Offline })
	ofStreams("lagging_streams", "Streams with a replica that is behind.", func(s storage.Streams) int { return s.Lagging })
	ofStreams("stream_gaps", "Messages that are missing in the midst of the stream that lacks most. Beyond a million a server that has crashed reads the stream whole before it serves it.",
		func(s storage.Streams) int { return int(s.Gaps) })
	add("servers_led", "1: the servers have a leader for all of them, which tells of the streams and makes new ones; 0: none has answered.",
		func(s *survey, now time.Time) (int, bool) {
			led := 0
			if s.led.is {
				led = 1
			}
			return led, s.led.fresh(now)
		})
	y.registry.MustRegister(m, y.survey.failed)
}

func (m *clusterMetrics) Describe(all chan<- *prometheus.Desc) {
	all <- m.nodes
	for _, f := range m.figures {
		all <- f.desc
	}
}

func (m *clusterMetrics) Collect(all chan<- prometheus.Metric) {
	states := map[string]int{admin.NodeLive: 0, admin.NodeQuiet: 0, admin.NodeLost: 0}
	for _, one := range m.members() {
		states[stateOf(one)]++
	}
	for state, n := range states {
		all <- prometheus.MustNewConstMetric(m.nodes, prometheus.GaugeValue, float64(n), state)
	}
	if !m.want() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, f := range m.figures {
		if n, fresh := f.of(m.survey, now); fresh {
			all <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(n))
		}
	}
}
