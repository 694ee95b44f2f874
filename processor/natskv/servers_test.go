package natskv_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/natskv"
)

// patience bounds every wait for servers; a cluster needs up to ten seconds to choose a
// leader after one is lost.
const patience = 60 * time.Second

// startServer runs a server with JetStream in this process.
func startServer(t *testing.T, change func(o *server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{
		ServerName: "single", Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(),
	}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	testkit.Must(t, err)
	s.Start()
	t.Cleanup(func() { stopServer(s) })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// startCluster runs three servers that know each other.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	var all []*server.Server
	var routes string
	for i := range 3 {
		s := startServer(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("n%d", i)
			o.Cluster = server.ClusterOpts{Name: "yard", Host: "127.0.0.1", Port: -1}
			o.Routes = server.RoutesFromStr(routes)
		})
		if routes != "" {
			routes += ","
		}
		routes += "nats://" + s.ClusterAddr().String()
		all = append(all, s)
	}
	testkit.Eventually(t, "the cluster has no leader", func() bool {
		for _, s := range all {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 {
				return true
			}
		}
		return false
	})
	return all
}

// dial connects to all of the servers.
func dial(t *testing.T, servers ...*server.Server) jetstream.JetStream {
	t.Helper()
	var urls string
	for _, s := range servers {
		urls += s.ClientURL() + ","
	}
	conn, err := nats.Connect(urls[:len(urls)-1], nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	testkit.Must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	testkit.Must(t, err)
	return js
}

func open(t *testing.T, js jetstream.JetStream, cfg natskv.Config) processor.Store {
	t.Helper()
	s, err := natskv.New(t.Context(), js, cfg)
	testkit.Must(t, err)
	return s
}

func newBucket() string { return "b" + rand.Text() }
