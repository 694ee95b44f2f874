// Package v1 is the yard's own HTTP API: management and runtime information of hubs,
// shared-access policies, sending, reading (pages, JSON lines and a live tail), the send
// calls of the Event Hubs REST API, health and metrics.
//
// It translates and keeps no state of its own: every call ends in the broker, and a 2xx answer to a
// send means that the broker said stored. The routes stand in one table (routes.go) with what each
// needs (need.go); a frame finds the route of a request, lets the caller in and tells errors
// (exchange.go). openapi.json describes all of it, and tests hold these together.
package v1

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	quota "github.com/eventyard/eventyard/internal/transport/admission" // v1 has an admission of its own
	"github.com/eventyard/eventyard/tracing"
	"github.com/prometheus/client_golang/prometheus"
)

// Broker is what the listener asks of the broker. All methods may be called by many
// goroutines at once.
type Broker interface {
	Namespace() string

	CreateHub(ctx context.Context, cfg broker.HubConfig) (broker.Hub, error)
	Hub(name string) (broker.Hub, error)
	LookUp(ctx context.Context, name string) (broker.Hub, error)
	Hubs() []broker.Hub
	UpdateHub(ctx context.Context, name string, change broker.HubChange) (broker.Hub, error)
	DeleteHub(ctx context.Context, name string) error

	CreateGroup(ctx context.Context, hub, group string) (broker.Group, error)
	Group(ctx context.Context, hub, group string) (broker.Group, error)
	Groups(ctx context.Context, hub string) ([]broker.Group, error)
	DeleteGroup(ctx context.Context, hub, group string) error

	Publish(ctx context.Context, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error)
	Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error)
	Partitions(ctx context.Context, hub string) ([]broker.PartitionInfo, error)
	Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error)
	// Reads counts what a group was given; see broker.Broker.
	Reads(hub, group string) prometheus.Counter
	// Keys tells which keys are published most; see broker.Counters.
	Keys(hub string, partitions []string) ([]broker.KeyTally, error)
}

var _ Broker = (*broker.Broker)(nil)

// Config says what a listener serves and how.
type Config struct {
	// Broker does the work. Required.
	Broker Broker
	// Access says who may do what. Required.
	Access Access
	// Groups keeps the leases and checkpoints of consumer groups; a *groups.Registry is one,
	// and has its metrics in Registry if it was made with it. nil means that the
	// yard keeps none: the routes of ownership and checkpoints answer 501.
	Groups Groups
	// KafkaGroups are the groups of Kafka's consumers; nil: they are not served.
	KafkaGroups KafkaGroups
	// Grid is what serves topics and subscriptions; nil: they are not served.
	Grid *Grid
	// Functions, Poison and Notices serve functions, circuits and what they put away; nil: they are
	// not served.
	Functions Functions
	Poison    Poison
	Notices   Notices
	// Backup writes a backup of the whole yard; nil: it is not served. An error before the first byte
	// is told to the client; behind it the backup itself says that it is not whole.
	Backup func(ctx context.Context, w io.Writer) error

	// Activity is the journal of what changed; nil: none is kept.
	Activity Activity
	// Storage tells how what the yard keeps everything in is; nil: it is not told.
	Storage Storage
	// Connections lists those of clients; nil: there are none to list.
	Connections Connections

	// Maintenance is what is done to the servers that keep the events; nil: there are none.
	Maintenance Maintenance

	// Figures are what the nodes have counted; nil: they are not served.
	Figures Figures
	// Keys counts those of events; nil: the broker's alone.
	Keys Keys

	// Version and Engine are shown by GET /api/v1.
	Version string
	Engine  string
	// Listeners gives the addresses the yard listens on, by listener, for GET /api/v1. It is a
	// function because addresses are known only once listening. nil leaves them out.
	Listeners func() map[string]string
	// Endpoint gives the endpoint of connection strings, such as sb://localhost:5672/,
	// for a client that reached the listener with this request: that of AMQP over TLS, or
	// of plain AMQP. Empty where there is no such listener. nil means that there is none.
	Endpoint func(r *http.Request, tls bool) string
	// BlobEndpoint gives the URL of the blob account in the same way, over TLS or without.
	// nil means that there is none.
	BlobEndpoint func(r *http.Request, tls bool) string
	// SignContainer makes a shared-access signature for a container with a key of the blob account.
	// nil means that there is no blob endpoint, as above.
	SignContainer func(key, container, permissions string, expires time.Time) (string, error)

	// Log takes what the listener cannot tell its client. nil means slog.Default().
	Log *slog.Logger
	// Tracer makes spans of what is sent; nil means that there are none. TraceURL is where people look at a
	// trace, with {trace} for its id; empty: nobody knows.
	Tracer   tracing.Tracer
	TraceURL string
	// Registry takes the listener's metrics and is what GET /metrics shows. nil means one
	// of the listener's own.
	Registry *prometheus.Registry

	// Cluster tells what the yard consists of; it may take some seconds. nil means that nothing is
	// known but the engine.
	Cluster func(context.Context) admin.Cluster
	// CA gives the certificate of the yard's own authority, as PEM; nothing where it has none. nil
	// means the same.
	CA func() ([]byte, error)

	// Ready says why the yard is not ready to serve yet: anybody is told the Text of a *NotReady, and no other
	// error's. nil means always ready.
	Ready func() error
	// Stopping ends when the yard begins to stop: long polls then answer with what
	// they have, and streams end with a word. It is a field because it belongs to the
	// listener's life and to no request. nil means never.
	Stopping context.Context

	// MaxEventBytes bounds what one send may store, and the body of a REST send. 0
	// means 1048576, as Event Hubs has it.
	MaxEventBytes int
	// Memory bounds what is read for clients and not taken yet; nil means one with the defaults.
	Memory *quota.Memory
	// WriteTimeout is how long a reader of a stream may leave one write waiting before
	// it is let go. 0 means 30 s.
	WriteTimeout time.Duration
	// Heartbeat is how often a silent tail sends a comment. 0 means 15 s.
	Heartbeat time.Duration
}

func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Cluster == nil {
		c.Cluster = func(context.Context) admin.Cluster {
			return admin.Cluster{Engine: c.Engine, Nodes: []admin.ClusterNode{}}
		}
	}
	if c.CA == nil {
		c.CA = func() ([]byte, error) { return nil, nil }
	}
	if c.Connections == nil {
		c.Connections = func(context.Context, string, int) (admin.Connections, error) {
			return admin.Connections{Connections: []admin.Connection{}, Keys: []admin.KeyUse{}}, nil
		}
	}
	if c.Keys == nil {
		c.Keys = func(_ context.Context, hub string, partitions []string) ([]broker.KeyTally, []string, error) {
			tallies, err := c.Broker.Keys(hub, partitions)
			return tallies, nil, err
		}
	}
	if c.Listeners == nil {
		c.Listeners = func() map[string]string { return nil }
	}
	if c.Endpoint == nil {
		c.Endpoint = func(*http.Request, bool) string { return "" }
	}
	if c.BlobEndpoint == nil {
		c.BlobEndpoint = func(*http.Request, bool) string { return "" }
	}
	if c.Stopping == nil {
		c.Stopping = context.Background()
	}
	if c.Memory == nil {
		c.Memory = quota.DefaultMemory()
	}
	c.MaxEventBytes = cmp.Or(c.MaxEventBytes, 1<<20)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	return c
}

// Handler is the management API. It starts no goroutine that outlives a request.
type Handler struct {
	cfg     Config
	metrics *metrics
	mux     *http.ServeMux    // which finds routes and serves nothing
	calls   map[string]*route // the Event Hubs calls, by path; read only
	// unrouted answers where there is nothing.
	unrouted *route
	// followed are the partitions that tails follow.
	followed *quota.Quota
	unready  unready
	// backingUp is held by the one backup that may be under way.
	backingUp sync.Mutex
	// maintaining is held by the one scrub, or change of replicas, that may be under way.
	maintaining sync.Mutex
}

// New makes the API. It listens on nothing: give what APIs returns to a frame.
func New(cfg Config) *Handler {
	if cfg.Broker == nil || cfg.Access == nil {
		panic("v1: the API needs both a broker and access")
	}
	cfg = cfg.withDefaults()
	d := &Handler{cfg: cfg, metrics: newMetrics(cfg.Registry), followed: quota.NewQuota("partitions in tails", maxFollowedByOne, maxFollowed)}
	d.register()
	return d
}

// APIs are the Event Hubs REST calls, which have errors in a form of their own, and the rest, which
// serves whatever nobody else does.
func (d *Handler) APIs() []frame.API {
	calls, rest := frame.API{Name: "eventhubs", Deliveries: true}, frame.API{Name: "v1"}
	calls.Serves = func(r *http.Request) bool { _, ok := parseAddress(r.URL.EscapedPath()); return ok }
	calls.Begin = func(c *frame.Call) frame.Exchange { return &exchange{Call: c, handler: d, eventHubs: true} }
	rest.Begin = func(c *frame.Call) frame.Exchange { return &exchange{Call: c, handler: d} }
	for _, rt := range d.routes() {
		api := &rest
		if rt.eventHubs {
			api = &calls
		}
		api.Routes = append(api.Routes, rt.row())
	}
	return []frame.API{calls, rest}
}

// untilOver gives the request's context, ended also when the yard begins to stop, and when the
// token that the request was let in with expires or is revoked; its cause then says which. An error
// says that it was revoked by now: what was opened since it was let in is not to be used.
func (d *Handler) untilOver(r *http.Request) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(d.cfg.Stopping, func() { cancel(frame.ErrStopping) })
	expire := func() {}
	if at := grantOf(r).Expires; !at.IsZero() {
		ctx, expire = context.WithDeadlineCause(ctx, at, &auth.ExpiredError{At: at})
	}
	forget := d.cfg.Access.OnChange(func() {
		if err := stillLetIn(r); err != nil {
			cancel(err)
		}
	})
	end := func() {
		forget()
		release()
		expire()
		cancel(nil)
	}
	if err := stillLetIn(r); err != nil {
		end()
		return nil, nil, err
	}
	return ctx, end, nil
}
