package redis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"
	"github.com/eventyard/eventyard/test/parts"
)

func connect(t *testing.T, addr string) redis.UniversalClient {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	return client
}

// TestStore runs the suite, all on one server, and each peer on connections of its own. // P1, P3,
// P7, P8
func TestStore(t *testing.T) {
	addr := parts.Redis(t)
	storetest.RunWith(t, func(t *testing.T) processor.Store { return New(connect(t, addr), Config{}) }, storetest.Options{
		Peer: func(t *testing.T, s processor.Store) processor.Store { return New(connect(t, addr), Config{}) },
	})
}

// P8: the suite on a Cluster, which refuses scripts whose keys lie in different slots.
func TestCluster(t *testing.T) {
	addr := parts.RedisCluster(t)
	open := func(t *testing.T) processor.Store {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
		t.Cleanup(func() { client.Close() })
		return New(client, Config{Prefix: "cluster"})
	}
	storetest.RunWith(t, open, storetest.Options{
		FewRaces: true,
		Peer:     func(t *testing.T, s processor.Store) processor.Store { return open(t) },
	})
}
