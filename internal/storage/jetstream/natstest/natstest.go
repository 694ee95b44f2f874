// Package natstest runs NATS servers with JetStream for tests: one for speed, or three that are a
// cluster. They sync before they acknowledge, as the servers of a yard must. Each is a process of its
// own, built without the race detector, so that races in the server's code do not fail our tests, and
// so that it can be killed and frozen. They end with the test process, however that ends. A yard name
// of its own for each test lets one cluster serve all tests of a package.
package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// patience bounds every wait for servers: a cluster needs up to ten seconds to choose a leader after
// one is lost.
const patience = 60 * time.Second

// Running is what a test logs for which servers run: package suites counts them.
const Running = "NATS servers run for it"

// Servers are those of one test, or those that the tests of a package share. One goroutine at a time
// may stop, kill, freeze and restart them.
type Servers struct {
	// Replicas is how many copies of everything they can keep.
	Replicas int

	all []*one
}

// Start runs n servers, 1, 3 or 5, until the test ends.
func Start(t testing.TB, n int) *Servers {
	t.Helper()
	return run(t, program(t), make([]*parts.Host, n))
}

// StartOn runs a server on each of the hosts, 1, 3 or 5, until the test ends.
func StartOn(t testing.TB, hosts ...*parts.Host) *Servers {
	t.Helper()
	return run(t, program(t), hosts)
}

func run(t testing.TB, program string, hosts []*parts.Host) *Servers {
	t.Helper()
	s, err := start(program, hosts)
	testkit.Must(t, err)
	t.Log(Running)
	t.Cleanup(func() {
		s.report(t)
		testkit.Check(t, s.remove(), "remove the NATS servers")
	})
	return s
}

// SystemUser is USER:PASSWORD of the servers' system account. Everybody else is let in to another one.
const SystemUser = "system:secret"

// StartAs runs one server with a configuration of the test's own, until the test ends, and gives its
// URL. The configuration has to listen at the address and keep what it stores in the folder.
func StartAs(t testing.TB, configure func(listen, folder string) string) (url string) {
	t.Helper()
	o, err := newOne(program(t), "n0", nil)
	testkit.Must(t, err)
	s := &Servers{Replicas: 1, all: []*one{o}}
	t.Cleanup(func() {
		s.report(t)
		testkit.Check(t, s.remove(), "remove the NATS server")
	})
	testkit.Must(t, os.WriteFile(o.configFile(), []byte(configure(o.client, o.store)), 0o600))
	testkit.Must(t, o.start())
	return o.url()
}

// URL gives all servers as one URL of storage.
func (s *Servers) URL() string {
	return "nats://" + strings.ReplaceAll(s.urls(0), "nats://", "")
}

var shared struct {
	sync.Mutex
	servers map[int]*Servers
}

// Shared gives n servers, 1 or 3, that are started for the first test that asks and run until the
// process ends. A test may stop, kill and freeze them if no other runs meanwhile: when it ends, all
// are brought back and have all data.
func Shared(t testing.TB, n int) *Servers {
	t.Helper()
	path := program(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.servers[n] == nil {
		s, err := start(path, make([]*parts.Host, n))
		testkit.Must(t, err)
		if shared.servers == nil {
			shared.servers = map[int]*Servers{}
		}
		shared.servers[n] = s
	}
	s := shared.servers[n]
	t.Log(Running)
	t.Cleanup(func() {
		s.report(t)
		testkit.Check(t, s.heal(), "bring the NATS servers back")
	})
	return s
}

// start runs a server on each of the hosts, on this machine itself where one is nil.
func start(program string, hosts []*parts.Host) (*Servers, error) {
	s := &Servers{Replicas: len(hosts)}
	var routes []string
	for i, host := range hosts {
		o, err := newOne(program, fmt.Sprintf("n%d", i), host)
		if err != nil {
			return nil, errors.Join(err, s.remove())
		}
		s.all = append(s.all, o)
		routes = append(routes, "nats://"+o.route)
	}
	if len(hosts) == 1 {
		routes = nil
	}
	for _, o := range s.all {
		if err := o.configure(routes); err != nil {
			return nil, errors.Join(err, s.remove())
		}
	}
	if err := s.heal(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// heal has all servers run, with a leader and with all data.
func (s *Servers) heal() error {
	for _, o := range s.all {
		if err := errors.Join(o.program.Thaw(), o.start()); err != nil {
			return fmt.Errorf("server %s: %w", o.name, err)
		}
	}
	conn, err := nats.Connect(s.urls(0), nats.Timeout(patience))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if err = s.occupy(js); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// occupy makes a stream that stays, which takes a leader and all servers. It also has a server keep
// the folder of all streams: one that deletes its last stream removes that folder a moment later,
// under one that is being made by then.
func (s *Servers) occupy(js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "natstest", Subjects: []string{"natstest"}, Replicas: s.Replicas})
	if err != nil {
		return fmt.Errorf("the servers make no stream: %w", err)
	}
	cluster := stream.CachedInfo().Cluster
	if len(s.all) == 1 {
		return nil
	}
	if cluster == nil || cluster.Leader == "" || len(cluster.Replicas) != s.Replicas-1 {
		return errors.New("the stream has no leader")
	}
	for _, r := range cluster.Replicas {
		if !r.Current || r.Offline {
			return fmt.Errorf("server %s is not up to date", r.Name)
		}
	}
	return s.makeStream(ctx, js)
}

// makeStream makes a stream and deletes it: the leader of all may take a server for offline that has all data
// again, and refuses new streams as long.
func (s *Servers) makeStream(ctx context.Context, js jetstream.JetStream) error {
	const name = "natstest_try"
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Storage: jetstream.MemoryStorage, Replicas: s.Replicas}); err != nil {
		return fmt.Errorf("the servers make no stream: %w", err)
	}
	return js.DeleteStream(ctx, name)
}

func (s *Servers) remove() error {
	var errs []error
	for _, o := range s.all {
		errs = append(errs, o.program.Remove())
	}
	return errors.Join(errs...)
}

// report shows what the servers of a test that failed have printed last.
func (s *Servers) report(t testing.TB) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, o := range s.all {
		t.Logf("server %s: %s", o.name, parts.Tail(o.program.Printed(), 3000))
	}
}

// Stop shuts a server down in good order; it may be down already.
func (s *Servers) Stop(t testing.TB, i int) {
	t.Helper()
	testkit.Must(t, s.all[i].program.End("TERM"))
}

// Kill ends a server at once, as kill -9 does; it may be down already.
func (s *Servers) Kill(t testing.TB, i int) {
	t.Helper()
	testkit.Must(t, s.all[i].program.End("KILL"))
}

// Restart starts a server that was stopped or killed, with what it has on disk.
func (s *Servers) Restart(t testing.TB, i int) {
	t.Helper()
	testkit.Must(t, s.all[i].start())
}

// TryStart starts a server that was stopped or killed, and may not be able to run: who waits for more than
// that it was tried finds out. It is down, or can be connected to, when this returns.
func (s *Servers) TryStart(i int) { _ = s.all[i].start() }

// Folder is where a server keeps its streams: who has stopped it may change what is there.
func (s *Servers) Folder(i int) string { return s.all[i].store }

// StoppedStoring tells whether a server has said since its start that it takes no part in storing, or not
// in all of it, until it is started again: it had no room, or its disk failed.
func (s *Servers) StoppedStoring(i int) bool { return stopped.MatchString(s.all[i].program.Printed()) }

var stopped = regexp.MustCompile(`(?i)will be DISABLED|critical write error`)

// Freeze stops a server where it is: its connections stay, and nobody answers.
func (s *Servers) Freeze(t testing.TB, i int) {
	t.Helper()
	testkit.Must(t, s.all[i].program.Freeze())
}

// Thaw lets a frozen server go on.
func (s *Servers) Thaw(t testing.TB, i int) {
	t.Helper()
	testkit.Must(t, s.all[i].program.Thaw())
}

// urls are those of all servers, beginning with one of them.
func (s *Servers) urls(first int) string {
	urls := make([]string, len(s.all))
	for i := range urls {
		urls[i] = s.all[(first+i)%len(urls)].url()
	}
	return strings.Join(urls, ",")
}

// Dial connects to all servers, beginning with one of them, until the test ends.
func (s *Servers) Dial(t testing.TB, first int, more ...nats.Option) *nats.Conn {
	t.Helper()
	return Dial(t, s.urls(first), more...)
}

// DialOnly connects to one server and never to another: who stops it cuts the connection.
func (s *Servers) DialOnly(t testing.TB, i int, more ...nats.Option) *nats.Conn {
	t.Helper()
	return Dial(t, s.all[i].url(), append(more, nats.IgnoreDiscoveredServers())...)
}

// Dial connects to any of some servers, and again to any after it was cut off, until the test ends.
func Dial(t testing.TB, urls string, more ...nats.Option) *nats.Conn {
	t.Helper()
	options := []nats.Option{nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.ReconnectWait(20 * time.Millisecond), nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2)}
	conn, err := nats.Connect(urls, append(options, more...)...)
	testkit.Must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// Leader is the server that leads a stream, once there is one. It asks over a connection to servers
// that answer.
func (s *Servers) Leader(t testing.TB, conn *nats.Conn, stream string) int {
	t.Helper()
	js, err := jetstream.New(conn)
	testkit.Must(t, err)
	leader := 0
	testkit.Eventually(t, "the stream has no leader", func() bool {
		found, err := js.Stream(t.Context(), stream)
		if err != nil || found.CachedInfo().Cluster == nil {
			return false
		}
		_, err = fmt.Sscanf(found.CachedInfo().Cluster.Leader, "n%d", &leader)
		return err == nil
	})
	return leader
}

// StepDown has the leader of a stream give up its office.
func StepDown(conn *nats.Conn, stream string) error {
	_, err := conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second)
	return err
}

// NeedsNoDetector skips a test of several servers in its own process that keep streams together, where the race detector
// is on. They have a data race of their own, in 2.15.2: one that comes to lead a stream while it still applies what the
// one before has stored asks without a lock whether anything is staged (applyStreamMsgOp, "could cause datarace"), and
// the first message that it takes in stages something (batchStagedDiff.commit). make test runs all tests of servers
// inside without the detector, those with Peer in their names.
func NeedsNoDetector(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("NATS servers that take a stream over have a data race of their own: make test runs this without the detector")
	}
}

var yards atomic.Int64

// Yard gives a name that no other test of the process has.
func Yard() string { return fmt.Sprintf("t%d", yards.Add(1)) }
