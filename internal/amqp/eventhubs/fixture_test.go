package eventhubs

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/internal/transport/pipe"
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
	storage  *storagetest.Storage
	broker   *broker.Broker
	policies *access.Registry
	groups   *groups.Registry
	listener *pipe.Listener
	registry *prometheus.Registry
	log      *testkit.ErrorLog
}

// setup may be changed before a yard is opened.
type setup struct {
	// idle is how long a client may be silent; zero: as long as elsewhere.
	idle    time.Duration
	bearer  access.TokenVerifier
	groups  func(Groups) Groups
	circuit func(before, after []byte) (string, error)
	handler Config
	// admission nil: the server's own.
	admission *admission.Listener
	// remote is where all connections come from; empty: from this process.
	remote string
}

func newYard(t testing.TB, change ...func(*setup)) *yard {
	t.Helper()
	y := &yard{t: t, listener: pipe.NewListener("yard"), registry: prometheus.NewRegistry(), log: testkit.NewErrorLog(t, slog.LevelDebug)}
	s := setup{groups: func(g Groups) Groups { return g }}
	for _, c := range change {
		c(&s)
	}
	hubs := hubstest.Open(t, storagetest.Config{SegmentBytes: 1 << 22, Log: y.log.Logger})
	y.storage, y.broker = hubs.Storage, hubs.Broker
	var err error
	y.policies, err = access.Open(t.Context(), access.Config{
		Meta: hubs.Meta, Hub: y.created, Development: true, Bearer: s.bearer, Log: y.log.Logger,
	})
	testkit.Must(t, err)
	y.groups = testkit.Value(groups.New(groups.Config{Meta: hubs.Meta, Broker: y.broker, Circuit: s.circuit, Log: y.log.Logger}))(t)
	s.handler.Groups = s.groups(y.groups)
	s.handler.Broker, s.handler.Access, s.handler.Log, s.handler.Metrics = y.broker, y.policies, y.log.Logger, y.registry
	handler := testkit.Value(New(s.handler))(t)
	server, err := amqp.New(amqp.Config{Handler: handler, Auth: handler, Admission: s.admission, IdleTimeout: s.idle, Log: y.log.Logger, Metrics: y.registry})
	testkit.Must(t, err)
	testkit.Run(t, func(ctx context.Context) error { return server.Serve(ctx, distant{y.listener, s.remote}) })
	return y
}

// distant is a listener whose connections come from elsewhere, unless that is empty.
type distant struct {
	net.Listener
	remote string
}

func (d distant) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil || d.remote == "" {
		return conn, err
	}
	return distantConn{conn, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(d.remote))}, nil
}

type distantConn struct {
	net.Conn
	remote net.Addr
}

func (c distantConn) RemoteAddr() net.Addr { return c.remote }

func (y *yard) created(name string) (time.Time, bool) {
	hub, err := y.broker.Hub(name)
	return hub.Created, err == nil
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

func (y *yard) hub(name string, partitions int, groups ...string) {
	y.t.Helper()
	_, err := y.broker.EnsureHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions}, groups)
	testkit.Must(y.t, err)
}

// policy makes one, with a key that is the policy's name and "key".
func (y *yard) policy(hub, name string, rights auth.Rights) {
	y.t.Helper()
	_, err := y.policies.Create(y.t.Context(), access.Policy{Hub: hub, Name: name, Rights: rights, Primary: keyOf(name), Secondary: keyOf(name) + "2"})
	testkit.Must(y.t, err)
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
		testkit.Must(y.t, err)
	}
}

// stored reads the bodies of a partition.
func (y *yard) stored(hub, partition string) []string {
	y.t.Helper()
	c := testkit.Value(y.broker.Cursor(y.t.Context(), hub, broker.DefaultGroup, partition, eventlog.Earliest()))(y.t)
	return each(storagetest.ReadAll(y.t, c), func(m string) string { return bodyOf(y.t, []byte(m)) })
}

// dial opens a connection by go-amqp. Without options it is anonymous.
func (y *yard) dial(opts *goamqp.ConnOptions) *goamqp.Conn {
	y.t.Helper()
	nc := testkit.Value(y.listener.Dial(y.t.Context()))(y.t)
	if opts == nil {
		opts = &goamqp.ConnOptions{SASLType: goamqp.SASLTypeAnonymous(), HostName: "localhost"}
	}
	conn := testkit.Value(goamqp.NewConn(y.t.Context(), nc, opts))(y.t)
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
	return testkit.Value(conn.NewSession(t.Context(), nil))(t)
}
