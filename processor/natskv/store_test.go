package natskv_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/natskv"
	"github.com/eventyard/eventyard/processor/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) { // P8
	js := dial(t, startServer(t, nil))
	open := func(t *testing.T) processor.Store { return open(t, js, natskv.Config{}) }
	storetest.RunWith(t, open, storetest.Options{FewRaces: true})
}

// Each instance has a connection of its own, to a server of its own.
func TestStoreKeepsTheContractOnACluster(t *testing.T) { // P8
	servers := startCluster(t)
	bucket := newBucket()
	suite(t, servers, bucket, storetest.Options{LateWatch: true})

	stopped := leaderOf(t, servers, bucket)
	stopServer(servers[stopped])
	left := append(append([]*server.Server{}, servers[:stopped]...), servers[stopped+1:]...)
	testkit.Eventually(t, "two of three servers choose no leader", func() bool {
		s, err := natskv.New(t.Context(), dial(t, left...), natskv.Config{Bucket: bucket})
		if err != nil {
			return false
		}
		_, err = s.Leases(t.Context(), group)
		return err == nil
	})
	t.Run("after one of three servers has stopped", func(t *testing.T) { suite(t, left, bucket, storetest.Options{FewRaces: true, LateWatch: true}) })
}

func suite(t *testing.T, servers []*server.Server, bucket string, opt storetest.Options) {
	t.Helper()
	var conns []jetstream.JetStream
	for _, s := range servers {
		conns = append(conns, dial(t, s))
	}
	next := 0
	store := func(t *testing.T) processor.Store {
		next++
		return open(t, conns[next%len(conns)], natskv.Config{Bucket: bucket, Replicas: 3})
	}
	opt.Peer = func(t *testing.T, _ processor.Store) processor.Store { return store(t) }
	storetest.RunWith(t, store, opt)
}

// leaderOf gives the server that leads the bucket.
func leaderOf(t *testing.T, servers []*server.Server, bucket string) int {
	t.Helper()
	stream, err := dial(t, servers...).Stream(t.Context(), "KV_"+bucket)
	testkit.Must(t, err)
	for i, s := range servers {
		if s.Name() == stream.CachedInfo().Cluster.Leader {
			return i
		}
	}
	t.Fatalf("the bucket's leader is %q", stream.CachedInfo().Cluster.Leader)
	return 0
}

var group = processor.Group{Namespace: "Space.example.net", Hub: "Orders", Group: "billing"}
