package redis

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"
	"github.com/eventyard/eventyard/test/parts"
)

var testGroup = processor.Group{Namespace: "space.example.net", Hub: "orders", Group: "billing"}

// take claims a partition that nobody has had, and begins.
func take(t *testing.T, s *Store) (processor.Lease, processor.Checkpoint) {
	t.Helper()
	won, err := s.Claim(t.Context(), testGroup, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}})
	if err != nil || len(won) != 1 {
		t.Fatalf("claim gave %v, %v", won, err)
	}
	c, err := s.Begin(t.Context(), testGroup, won[0])
	testkit.Must(t, err)
	return won[0], c
}

// TestAServerThatIsDownIsAnErrorAndNeverAnAnswer; one that keeps an append-only file comes back
// from a kill with what it acknowledged. // P3, P8
func TestAServerThatIsDownIsAnErrorAndNeverAnAnswer(t *testing.T) {
	ctx := t.Context()
	server := parts.StartRedis(t, parts.RedisDurable...)
	s := New(connect(t, server.Addr), Config{})
	lease, c := take(t, s)
	var err error
	for c.Sequence < 40 {
		c.Sequence++
		if c, err = s.Save(ctx, testGroup, lease, c); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := s.Put(ctx, testGroup, processor.Entry{Key: "presence/a"})
	testkit.Must(t, err)
	server.Kill(t)
	for name, call := range storetest.Calls(s, testGroup, lease, c, entry) {
		storetest.WantUnknown(t, name, call(ctx))
	}
	server.Start(t)
	got, err := s.Begin(ctx, testGroup, lease)
	if err != nil || got != c {
		t.Errorf("begin gave %+v, %v, want %+v", got, err, c)
	}
	for _, name := range []string{"Save", "Claim", "Remove"} {
		testkit.Check(t, storetest.Calls(s, testGroup, lease, c, entry)[name](ctx), "%s after the restart", name)
	}
}

// TestALostAnswerIsNeitherSuccessNorConflict: the client's own repeats, which it makes by
// default, would find the first write in their way. // P3
func TestALostAnswerIsNeitherSuccessNorConflict(t *testing.T) {
	ctx := t.Context()
	addr := parts.Redis(t)
	steady := New(connect(t, addr), Config{})
	lease, c := take(t, steady)
	c.Sequence = 1
	c, err := steady.Save(ctx, testGroup, lease, c)
	testkit.Must(t, err)
	entry, err := steady.Put(ctx, testGroup, processor.Entry{Key: "presence/a"})
	testkit.Must(t, err)
	var cut atomic.Bool
	client := redis.NewClient(&redis.Options{Addr: addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &deafConn{Conn: conn, cut: &cut}, err
	}})
	t.Cleanup(func() { client.Close() })
	s := New(client, Config{})
	for _, name := range []string{"Claim", "Save", "Put"} {
		testkit.Must(t, testkit.Err(s.Leases(ctx, testGroup))) // there is a connection
		before := storetest.Records(t, steady, testGroup)
		cut.Store(true)
		storetest.WantUnknown(t, name, storetest.Calls(s, testGroup, lease, c, entry)[name](ctx))
		if cut.Load() || storetest.Records(t, steady, testGroup) == before {
			t.Errorf("%s was not made, so nothing was proved", name)
		}
	}
}

// deafConn loses the answer to one write, after the server has given it.
type deafConn struct {
	net.Conn
	cut *atomic.Bool
}

func (c *deafConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err == nil && c.cut.CompareAndSwap(true, false) {
		_, err = c.Conn.Read(make([]byte, 1))
		c.Conn.Close()
	}
	return n, err
}

// TestAWatchGoesOnWhenItsConnectionIsCut and tells of a change, since some may have been missed.
// P8
func TestAWatchGoesOnWhenItsConnectionIsCut(t *testing.T) {
	client := connect(t, parts.Redis(t))
	storetest.WatchThroughCuts(t, New(client, Config{}), testGroup, func() {
		if n, err := client.Do(t.Context(), "client", "kill", "type", "pubsub").Int(); err != nil || n != 1 {
			t.Fatalf("cut %d connections: %v", n, err)
		}
	})
}

func TestNamesWithBracesStayInOneSlot(t *testing.T) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{parts.RedisCluster(t)}})
	t.Cleanup(func() { client.Close() })
	s := New(client, Config{Prefix: "any"})
	for _, g := range []processor.Group{
		{Namespace: "a}b", Hub: "{c}", Group: "$Default"}, {Namespace: "}", Hub: "{", Group: "{}"},
		{Namespace: "a/b", Hub: "c", Group: "d"}, {Namespace: "a", Hub: "b/c", Group: "d"},
	} {
		won, err := s.Claim(t.Context(), g, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}})
		if err == nil && len(won) == 1 {
			_, err = s.Begin(t.Context(), g, won[0])
		}
		if err != nil || len(won) != 1 {
			t.Errorf("%+v: %v, %v", g, won, err)
		}
	}
}
