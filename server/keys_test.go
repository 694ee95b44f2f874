package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/busiest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1, C4: what each node has counted of a partition's keys is added up, whichever is asked, and a node that
// does not answer is named.
func TestKeysOfSeveralNodes(t *testing.T) {
	s := newShared(t)
	synctest.Test(t, func(t *testing.T) {
		wire := &clustertest.Network{}
		s.wire, s.prompt = wire, true
		nodes := samplingNodes(t, s, "a", "b")
		testkit.Must(t, testkit.Err(nodes[0].broker.CreateHub(t.Context(), broker.HubConfig{Name: "orders", Partitions: 2})))
		time.Sleep(20 * time.Second) // both know of each other, and of the hub
		began := time.Now()
		ask := func(y *yard) ([]broker.KeyTally, string) {
			tallies, missing, err := y.figures.keys.count(asRoot(t, y), "orders", []string{"1", "0"})
			testkit.Must(t, err)
			return tallies, strings.Join(missing, " ")
		}
		ask(nodes[1])
		for i, y := range nodes {
			for range 5 * (i + 1) {
				testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, []eventlog.Event{{Key: []byte("k"), Message: []byte("x")}})))
			}
		}
		for _, y := range nodes {
			got, missing := ask(y)
			testkit.Equal(t, missing, "", "nodes that did not answer")
			testkit.That(t, len(got) == 2 && got[0].Partition == "1" && got[0].Events == 0, "of the other partition: %+v", got)
			testkit.Deep(t, got[1].Keys, []busiest.Key{{Key: "k", Count: 15}})
			testkit.That(t, got[1].Partition == "0" && got[1].Since.Equal(began), "of the partition: %+v", got[1])
		}
		wire.Inject(func(ctx context.Context, r cluster.Request) error {
			if r.Subject == "keys.count" {
				return clustertest.Lose(ctx)
			}
			return nil
		}, nil)
		got, missing := ask(nodes[0])
		testkit.Equal(t, missing, "b", "nodes that did not answer")
		testkit.Deep(t, got[1].Keys, []busiest.Key{{Key: "k", Count: 5}})
	})
}
