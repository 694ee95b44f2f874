package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/testkit"
)

// asking is a survey whose servers a test has.
type asking struct {
	*yard
	asked   atomic.Int64
	first   bool
	answers storage.Servers
	wait    atomic.Bool // for as long as they may
}

func newAsking(t *testing.T) *asking {
	a := &asking{yard: &yard{registry: prometheus.NewRegistry(), nodes: cluster.Alone("a"), storage: &storage.Storage{}}, first: true}
	a.survey = &survey{
		first: func() bool { return a.first }, unheld: func(context.Context) (int, error) { return 2, nil },
		hubOf: func(string) string { return "orders" }, wanted: make(chan struct{}, 1), failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "failed"}),
		servers: func(ctx context.Context) storage.Servers {
			a.asked.Add(1)
			if a.wait.Load() {
				<-ctx.Done()
				return storage.Servers{Err: context.Cause(ctx), LostErr: context.Cause(ctx)}
			}
			return a.answers
		},
	}
	a.registerCluster()
	testkit.Run(t, a.survey.run)
	return a
}

// scraped gives the figures of the streams and shards, and how often nothing could be found out.
func (a *asking) scraped(t *testing.T) string {
	t.Helper()
	found := map[string]float64{}
	for _, f := range testkit.Value(a.registry.Gather())(t) {
		if name := strings.TrimPrefix(f.GetName(), "eventyard_cluster_"); name != "nodes" {
			found[name] = f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
		}
	}
	return strings.TrimPrefix(fmt.Sprint(found), "map") // by name
}

// V7, C1: a scrape waits for no server. They are asked once in half a minute, however many scrape, and not at
// all while nobody does; what they said is told for some minutes.
func TestServersAreSurveyedWhileSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		a.answers = storage.Servers{
			Streams: storage.Streams{Count: 9, Leaderless: 1, Offline: 3, Lagging: 4, Gaps: 7}, Lost: map[string]string{"s2": "l", "s1": "l"},
		}
		const all = "[failed:%d lagging_streams:4 leaderless_streams:1 lost_streams:2 offline_streams:3 servers_led:%d stream_gaps:7 streams:9 unheld_shards:2]"
		testkit.Equal(t, a.scraped(t), "[failed:0]", "the first scrape")
		synctest.Wait()
		began := time.Now()
		for time.Since(began) < 295*time.Second {
			testkit.Equal(t, a.scraped(t), fmt.Sprintf(all, 0, 1), "scraped")
			time.Sleep(time.Second)
		}
		testkit.Equal(t, a.asked.Load(), 10, "times that the servers were asked in nearly five minutes")
		testkit.Deep(t, a.survey.overview(), &overview.Streams{Lost: 2, FirstLost: "s1 of hub orders", Leaderless: 1})

		a.wait.Store(true) // the last that was known is told for as long as it is new enough
		time.Sleep(time.Minute)
		asked := a.asked.Load()
		testkit.Equal(t, a.scraped(t), fmt.Sprintf(all, 1, 0), "scraped while the servers are silent")
		time.Sleep(time.Hour)
		testkit.Equal(t, a.asked.Load(), asked+1, "times that the servers were asked, the last for one scrape")
		testkit.Equal(t, a.scraped(t), "[failed:2]", "scraped after a long time")

		synctest.Wait()
		a.wait.Store(false)
		a.first = false
		time.Sleep(surveyEvery + surveyTime)
		asked = a.asked.Load()
		time.Sleep(time.Minute)
		testkit.Equal(t, a.scraped(t), "[failed:3]", "scraped at a node that is not the first")
		testkit.That(t, a.survey.overview() == nil, "such a node tells the overview of streams")
		synctest.Wait()
		testkit.Equal(t, a.asked.Load(), asked, "times that such a node has asked")
	})
}

// V7: what could be found out is told without the rest.
func TestASurveyGivesWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		a.answers = storage.Servers{Streams: storage.Streams{Count: 1}, LostErr: errors.New("nobody answers")}
		a.scraped(t)
		synctest.Wait()
		testkit.Equal(t, a.scraped(t), "[failed:1 lagging_streams:0 leaderless_streams:0 offline_streams:0 servers_led:1 stream_gaps:0 streams:1 unheld_shards:2]", "scraped")
		testkit.Deep(t, a.survey.overview(), &overview.Streams{})
	})
}

// V7: nodes are counted by what they are to the others.
func TestNodesByState(t *testing.T) {
	m := &clusterMetrics{survey: &survey{first: func() bool { return false }}, nodes: prometheus.NewDesc("nodes", "", []string{"state"}, nil), members: func() []cluster.Member {
		return []cluster.Member{{Alive: true}, {Alive: true, Quiet: true}, {}, {Alive: true}}
	}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	states := map[string]float64{}
	for _, one := range testkit.Value(registry.Gather())(t)[0].Metric {
		states[one.Label[0].GetValue()] = one.GetGauge().GetValue()
	}
	testkit.That(t, maps.Equal(states, map[string]float64{"live": 2, "quiet": 1, "lost": 1}), "it counts %v", states)
}
