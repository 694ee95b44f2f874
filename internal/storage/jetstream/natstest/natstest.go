// Package natstest runs NATS servers with JetStream inside a test: one for speed, or three that are a
// cluster. They sync before they acknowledge, as the servers of a yard must. A yard name of its own
// for each test lets one cluster serve a whole suite.
package natstest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
)

// patience bounds every wait for servers: a cluster needs up to ten seconds to choose a leader after
// one is lost.
const patience = 60 * time.Second

// Servers are those of one test, or of one suite.
type Servers struct {
	// Replicas is how many copies of everything they can keep.
	Replicas int

	options []*server.Options
	servers []*server.Server
}

// Start runs n servers, 1 or 3, until the test ends.
func Start(t testing.TB, n int) *Servers {
	t.Helper()
	s := &Servers{Replicas: n}
	var routes []string
	for i := range n {
		o := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, MaxPayload: 8 << 20,
		}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "yard", Host: "127.0.0.1", Port: -1}
			o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		}
		s.options, s.servers = append(s.options, o), append(s.servers, nil)
		s.run(t, i)
		o.Port = s.port(i) // for when it comes back
		if n > 1 {
			o.Cluster.Port = s.servers[i].ClusterAddr().Port
			routes = append(routes, "nats://"+s.servers[i].ClusterAddr().String())
		}
	}
	for _, o := range s.options {
		o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
	}
	t.Cleanup(func() {
		for i := range s.servers {
			s.Stop(i)
		}
	})
	s.WaitForLeader(t)
	s.occupy(t)
	return s
}

// occupy makes a stream that stays. A server that deletes its last stream removes the folder of all
// of them a moment later, under one that is being made by then.
func (s *Servers) occupy(t testing.TB) {
	t.Helper()
	js, err := jetstream.New(s.Dial(t, 0))
	testkit.Must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "natstest", Subjects: []string{"natstest"}, Replicas: s.Replicas})
	testkit.Must(t, err)
}

func (s *Servers) run(t testing.TB, i int) {
	t.Helper()
	one, err := server.NewServer(s.options[i].Clone())
	testkit.Must(t, err)
	one.Start()
	s.servers[i] = one
	if !one.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
}

func (s *Servers) port(i int) int {
	var port int
	_, _ = fmt.Sscanf(s.servers[i].ClientURL()[strings.LastIndexByte(s.servers[i].ClientURL(), ':'):], ":%d", &port)
	return port
}

// WaitForLeader waits until the servers can make streams.
func (s *Servers) WaitForLeader(t testing.TB) {
	t.Helper()
	if len(s.servers) == 1 {
		return
	}
	testkit.Eventually(t, "the cluster has no leader", func() bool {
		for _, one := range s.servers {
			if one.Running() && one.JetStreamIsLeader() && len(one.JetStreamClusterPeers()) == len(s.servers) {
				return true
			}
		}
		return false
	})
}

// Stop shuts a server down; it may be down already.
func (s *Servers) Stop(i int) {
	s.servers[i].Shutdown()
	s.servers[i].WaitForShutdown()
}

// Restart starts a server that was stopped, with what it has on disk.
func (s *Servers) Restart(t testing.TB, i int) {
	t.Helper()
	s.run(t, i)
}

// Dial connects to all servers, beginning with one of them, until the test ends.
func (s *Servers) Dial(t testing.TB, first int) *nats.Conn {
	t.Helper()
	urls := make([]string, len(s.servers))
	for i := range urls {
		urls[i] = s.servers[(first+i)%len(urls)].ClientURL()
	}
	return dial(t, strings.Join(urls, ","))
}

// DialOnly connects to one server and never to another: who stops it cuts the connection.
func (s *Servers) DialOnly(t testing.TB, i int) *nats.Conn {
	t.Helper()
	return dial(t, s.servers[i].ClientURL(), nats.IgnoreDiscoveredServers())
}

func dial(t testing.TB, urls string, more ...nats.Option) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(urls, append(more, nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2))...)
	testkit.Must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// StepDown has the leader of a stream give up its office.
func StepDown(conn *nats.Conn, stream string) error {
	_, err := conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second)
	return err
}

var yards atomic.Int64

// Yard gives a name that no other test of the process has.
func Yard() string { return fmt.Sprintf("t%d", yards.Add(1)) }
