package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/caller"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// samplingNodes opens yards that share storage, each of which is a node and samples what it does.
func samplingNodes(t *testing.T, s *shared, names ...string) (nodes []*yard) {
	t.Helper()
	for _, name := range names {
		cfg := s.config()
		cfg.Node = name
		y := testkit.Value(openYard(t.Context(), testkit.Value(New(cfg))(t).cfg, nil))(t)
		t.Cleanup(func() { testkit.Must(t, y.close()) })
		testkit.Run(t, func(ctx context.Context) error {
			return service.Group{Parts: []service.Part{
				{Name: "nodes", Run: y.nodes.Run}, {Name: "broker", Run: y.broker.Run}, {Name: "series", Run: y.figures.sampler.Run},
			}}.Run(ctx)
		})
		nodes = append(nodes, y)
	}
	return nodes
}

// asRoot is the context of a request by the root policy.
func asRoot(t *testing.T, y *yard) context.Context {
	t.Helper()
	key := testkit.Value(y.access.Policy("", auth.RootPolicy))(t).Primary
	return caller.With(t.Context(), caller.Caller{Grant: testkit.Value(y.access.Key(t.Context(), auth.RootPolicy, key))(t)})
}

// total adds up what is known of a series.
func total(values []float32) (sum float64) {
	for _, v := range values {
		if v == v {
			sum += float64(v)
		}
	}
	return sum
}

// R6, C4: what each node has counted is added up, whichever is asked, and a node that does not answer is
// named.
func TestSeriesOfSeveralNodes(t *testing.T) {
	s := newShared(t)
	synctest.Test(t, func(t *testing.T) {
		wire := &clustertest.Network{}
		s.wire, s.prompt = wire, true
		nodes := samplingNodes(t, s, "a", "b")
		testkit.Must(t, testkit.Err(nodes[0].broker.CreateHub(t.Context(), broker.HubConfig{Name: "orders", Partitions: 1})))
		time.Sleep(20 * time.Second) // both know of each other, and of the hub
		for i, y := range nodes {
			for range 5 * (i + 1) {
				testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), "orders", broker.Target{}, []eventlog.Event{{Message: []byte("x")}})))
				time.Sleep(100 * time.Millisecond)
			}
			y.broker.Reads("orders", broker.DefaultGroup).Add(float64(i + 1))
		}
		time.Sleep(3 * time.Second)
		keys := []series.Key{{Of: series.Published}, {Of: series.Published, Hub: "orders"}, {Of: series.Read, Hub: "orders", Group: broker.DefaultGroup}}
		for _, y := range nodes {
			points, missing, err := y.figures.Series(asRoot(t, y), keys, time.Minute)
			testkit.Must(t, err)
			testkit.Equal(t, len(missing), 0, "nodes that did not answer")
			for i, want := range []float64{15, 15, 3} {
				testkit.That(t, total(points[i].Values) > want-0.01 && total(points[i].Values) < want+0.01, "%v is %v, want %v", keys[i], total(points[i].Values), want)
			}
		}
		wire.Inject(func(ctx context.Context, r cluster.Request) error {
			if r.Subject == "series.read" {
				return clustertest.Lose(ctx)
			}
			return nil
		}, nil)
		points, missing, err := nodes[0].figures.Series(asRoot(t, nodes[0]), keys[1:2], time.Minute)
		testkit.Must(t, err)
		testkit.Equal(t, strings.Join(missing, " "), "b", "nodes that did not answer")
		testkit.That(t, total(points[0].Values) > 4.9 && total(points[0].Values) < 5.1, "of this node: %v", points[0].Values)
		began := time.Now()
		_, missing, err = nodes[0].figures.Series(cluster.WithPatience(asRoot(t, nodes[0]), began.Add(200*time.Millisecond)), keys[1:2], time.Minute)
		testkit.Must(t, err)
		testkit.Equal(t, strings.Join(missing, " "), "b", "nodes that did not answer in time")
		testkit.Equal(t, time.Since(began), 200*time.Millisecond, "how long an asker waits who has little patience")
	})
}

// V1, C4: who asks one node over HTTP hears what all have counted, whatever right the question needs: the caller goes along
// to the others, which judge it.
func TestFiguresOfSeveralNodesByHTTP(t *testing.T) {
	s := newShared(t)
	s.wire = &clustertest.Network{}
	nodes := s.startAll(s.named("node-1", "node-2")...)
	testkit.Must(t, testkit.Err(nodes[0].admin().CreateHub(t.Context(), admin.HubRequest{Name: "orders"})))
	for _, node := range nodes { // all of them, before one asks another
		node.awaitNodes(len(nodes), "orders")
	}
	for _, node := range nodes {
		client := node.admin()
		o, err := client.Overview(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, strings.Join(o.Missing, " "), "", "nodes that the overview misses")
		points, err := client.Series(t.Context(), admin.SeriesQuery{Of: []string{"published"}})
		testkit.Must(t, err)
		testkit.Equal(t, strings.Join(points.Missing, " "), "", "nodes that the series miss")
		busy, err := client.BusyKeys(t.Context(), "orders", admin.BusyKeysQuery{})
		testkit.Must(t, err)
		testkit.Equal(t, strings.Join(busy.Unanswered, " "), "", "nodes that the busiest keys miss")
	}
}
