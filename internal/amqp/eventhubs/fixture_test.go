package eventhubs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever a connection has begun has ended when the connection has. The official client
// forgets to end one of its goroutines where a link was refused.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(
		"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/internal.(*Namespace).startNegotiateClaimRenewer.func3"))
}

// yard is a real broker on the real disk engine in memory, behind the listener and a real
// AMQP server, on connections in memory. It works inside a synctest bubble and outside.
type yard struct {
	t        testing.TB
	broker   *broker.Broker
	policies *access.Registry
	groups   *groups.Registry
	listener *memoryListener
	registry *prometheus.Registry
	// errors is what was logged as an error.
	errors *errorLog
}

// setup may be changed before a yard is opened.
type setup struct {
	engine  func(eventlog.Engine) eventlog.Engine
	bearer  access.TokenVerifier
	groups  func(Groups) Groups
	handler Config
}

func newYard(t testing.TB, change ...func(*setup)) *yard {
	t.Helper()
	y := &yard{t: t, listener: newMemoryListener(), registry: prometheus.NewRegistry(), errors: &errorLog{}}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), y.errors), &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(y.errors.check(t))
	s := setup{
		engine: func(e eventlog.Engine) eventlog.Engine { return e },
		groups: func(g Groups) Groups { return g },
	}
	for _, c := range change {
		c(&s)
	}
	engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), SegmentBytes: 1 << 22, Log: log})
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "meta.db"), NoSync: true, Log: log})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	y.broker, err = broker.Open(t.Context(), broker.Config{Engine: s.engine(engine), Meta: store, Namespace: "yard", Log: log})
	must(t, err)
	y.policies, err = access.Open(t.Context(), access.Config{Meta: store, Hub: y.created, Development: true, Bearer: s.bearer, Log: log})
	must(t, err)
	y.groups, err = groups.New(groups.Config{Meta: store, Broker: y.broker, Log: log})
	must(t, err)
	s.handler.Groups = s.groups(y.groups)
	s.handler.Broker, s.handler.Access, s.handler.Log, s.handler.Metrics = y.broker, y.policies, log, y.registry
	y.serve(s.handler, log)
	return y
}

func (y *yard) created(name string) (time.Time, bool) {
	hub, err := y.broker.Hub(name)
	return hub.Created, err == nil
}

func (y *yard) serve(cfg Config, log *slog.Logger) {
	handler, err := New(cfg)
	must(y.t, err)
	server, err := amqp.New(amqp.Config{Handler: handler, Auth: handler, Log: log, Metrics: y.registry})
	must(y.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ctx, y.listener)
	}()
	y.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// in is the same yard for a subtest.
func (y *yard) in(t testing.TB) *yard {
	sub := *y
	sub.t = t
	return &sub
}

// newOrders has a hub of that name.
func newOrders(t testing.TB, partitions int) *yard {
	t.Helper()
	y := newYard(t)
	y.hub("orders", partitions)
	return y
}

// same compares, and shows where it is not.
func same(t testing.TB, want, got any, opts ...cmp.Option) {
	t.Helper()
	testkit.Diff(t, want, got, opts...)
}

func (y *yard) hub(name string, partitions int, groups ...string) {
	y.t.Helper()
	_, err := y.broker.EnsureHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions}, groups)
	must(y.t, err)
}

// policy makes one, with a key that is the policy's name and "key".
func (y *yard) policy(hub, name string, rights auth.Rights) {
	y.t.Helper()
	_, err := y.policies.Create(y.t.Context(), access.Policy{Hub: hub, Name: name, Rights: rights, Primary: keyOf(name), Secondary: keyOf(name) + "2"})
	must(y.t, err)
}

func keyOf(policy string) string {
	if policy == auth.RootPolicy {
		return auth.DevelopmentKey
	}
	return policy + "-key-of-a-length-that-is-allowed-0123456789"
}

// sasToken signs for a resource.
func sasToken(resource, policy string, life time.Duration) string {
	return auth.Sign(resource, policy, keyOf(policy), time.Now().Add(life))
}

// store publishes bodies to a partition, each by itself.
func (y *yard) store(hub, partition string, bodies ...string) {
	y.t.Helper()
	for _, body := range bodies {
		_, err := y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: partition}, []eventlog.Event{{Message: plain(y.t, body)}})
		must(y.t, err)
	}
}

// stored reads the bodies of a partition.
func (y *yard) stored(hub, partition string) []string {
	y.t.Helper()
	c, err := y.broker.Cursor(y.t.Context(), hub, broker.DefaultGroup, partition, eventlog.Earliest())
	must(y.t, err)
	defer c.Close()
	bodies := []string{}
	for {
		run, err := c.TryNext(y.t.Context())
		must(y.t, err)
		if len(run.Events) == 0 {
			return bodies
		}
		for _, e := range run.Events {
			bodies = append(bodies, bodyOf(y.t, e.Message))
		}
	}
}

// dial opens a connection by go-amqp. Without options it is anonymous.
func (y *yard) dial(opts *goamqp.ConnOptions) *goamqp.Conn {
	y.t.Helper()
	nc, err := y.listener.dial(y.t.Context())
	must(y.t, err)
	if opts == nil {
		opts = &goamqp.ConnOptions{SASLType: goamqp.SASLTypeAnonymous(), HostName: "localhost"}
	}
	conn, err := goamqp.NewConn(y.t.Context(), nc, opts)
	must(y.t, err)
	y.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// session opens a connection with all rights and a session on it.
func (y *yard) session() *goamqp.Session { return y.sessionAs(auth.RootPolicy) }

// sessionAs logs in by a policy's name and key.
func (y *yard) sessionAs(policy string) *goamqp.Session {
	y.t.Helper()
	conn := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(policy, keyOf(policy)), HostName: "localhost"})
	return newSession(y.t, conn)
}

func newSession(t testing.TB, conn *goamqp.Conn) *goamqp.Session {
	t.Helper()
	s, err := conn.NewSession(t.Context(), nil)
	must(t, err)
	return s
}

// errorLog counts the lines of a log that say that something promised was not kept.
// A test that provokes such says how many.
type errorLog struct{ logged, want atomic.Int64 }

func (l *errorLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("level=ERROR")) {
		l.logged.Add(1)
	}
	return len(line), nil
}

func (l *errorLog) check(t testing.TB) func() {
	return func() {
		if logged, want := l.logged.Load(), l.want.Load(); logged != want {
			t.Errorf("%d errors were logged, want %d", logged, want)
		}
	}
}

// memoryListener accepts connections that are pipes in memory.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return memoryConn{ours}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5672} }

// memoryConn says of its end what a connection of the network says.
type memoryConn struct{ net.Conn }

func (c memoryConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}
