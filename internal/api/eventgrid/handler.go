// Package eventgrid is Event Grid's HTTP API: publishing the way Event Grid's clients do it, pull
// delivery the way its namespace clients do it, validation links, and the management calls and
// JSON of Event Grid. All of it is under /topics/, and under the paths of Azure's resource manager.
//
// It translates and keeps no state of its own. A frame has a request found in one table
// (routes.go), let in by a topic's key, a signature made with one, or a policy of the namespace
// (admit.go), and served; errors are told in Event Grid's form (refuse.go).
// A publication is answered 200 only when the topic's log has said that it is stored.
package eventgrid

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/tracing"
)

// Topics is what the listener asks of the definitions. All methods may be called by many
// goroutines at once.
type Topics interface {
	Topic(name string) (topics.Topic, error)
	// LookUpTopic is Topic with a fresh look at what other nodes have changed, if there may be one.
	LookUpTopic(ctx context.Context, name string) (topics.Topic, error)
	Topics() []topics.Topic
	CreateTopic(ctx context.Context, cfg topics.TopicConfig) (topics.Topic, error)
	EnsureTopic(ctx context.Context, cfg topics.TopicConfig) (topics.Topic, error)
	UpdateTopic(ctx context.Context, name string, change func(*topics.Topic) error) (topics.Topic, error)
	DeleteTopic(ctx context.Context, name string) error
	RegenerateKey(ctx context.Context, topic, key string) (topics.Topic, error)
	DomainTopics(domain string) ([]string, error)
	MakeDomainTopic(ctx context.Context, domain, name string) (string, error)
	Publish(ctx context.Context, topic string, events [][]byte, by *quota.Meter) error
	Find(source topics.Source, name string) (topics.Subscription, error)
	Subscriptions(source topics.Source) ([]topics.Subscription, error)
	Create(ctx context.Context, source topics.Source, name string, s topics.Settings) (topics.Subscription, error)
	Update(ctx context.Context, source topics.Source, name string, change func(*topics.Settings) error) (topics.Subscription, error)
	Delete(ctx context.Context, source topics.Source, name string) error
	Confirm(ctx context.Context, id, token string, rate int) (topics.Subscription, error)
}

var _ Topics = (*topics.Registry)(nil)

// Puller is what it asks of the delivery service. All methods may be called by many
// goroutines at once.
type Puller interface {
	Receive(ctx context.Context, subscription string, max int, wait time.Duration) ([]delivery.Received, error)
	Settle(ctx context.Context, subscription string, how delivery.Settlement, delay time.Duration, tokens []string) ([]delivery.Settled, error)
	// GiveBack releases what was received for somebody who does not get it.
	GiveBack(ctx context.Context, subscription string, tokens []string) error
}

var (
	_ Puller = (*delivery.Service)(nil)
	_ Puller = (*forward.Forwarder)(nil)
)

// Access lets in whoever shows a namespace policy's signature or key, or a bearer token.
type Access interface {
	frame.Access
	Development() bool
	// MayLook tells whether a request's address may cause a fresh look before it is refused.
	MayLook(ctx context.Context) bool
	// Quota gives the meter of what an account publishes; nil: it has none.
	Quota(account string) *quota.Meter
}

// Config says what the listener serves.
type Config struct {
	// Topics, Pull and Access are required.
	Topics Topics
	Pull   Puller
	Access Access
	// Endpoint is the publish URL of a topic as a client of this request reaches it. nil, or
	// an empty answer, means that it is made of the request itself.
	Endpoint func(r *http.Request, topic string) string
	// MaxBytes of a publication; zero: 1,536,000, as Event Grid has it.
	MaxBytes int
	// Stopping ends long polls. It is a field because it belongs to the listener's life and to no
	// request. nil means never.
	Stopping context.Context
	// Log takes what the listener cannot tell its client. nil means slog.Default().
	Log *slog.Logger
	// Metrics takes the listener's counts; nil means nobody.
	Metrics prometheus.Registerer
	// Notes takes that keys were shown; nil means nobody does.
	Notes activity.Notes
	// Tracer makes spans of publications; nil means that there are none.
	Tracer tracing.Tracer
}

func (c Config) withDefaults() Config {
	if c.Endpoint == nil {
		c.Endpoint = func(*http.Request, string) string { return "" }
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, 1_536_000)
	if c.Stopping == nil {
		c.Stopping = context.Background()
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	return c
}

// Handler is Event Grid's API. It starts no goroutine.
type Handler struct {
	cfg     Config
	routes  []route // read only
	metrics *metrics
	// nowhere stands for topics that are not there. Nobody knows its keys.
	nowhere topics.Topic
}

// New makes the API. It listens on nothing: give what API returns to a frame.
func New(cfg Config) *Handler {
	if cfg.Topics == nil || cfg.Pull == nil || cfg.Access == nil {
		panic("eventgrid: the API needs topics, somebody to pull from, and access")
	}
	cfg = cfg.withDefaults()
	return &Handler{
		cfg: cfg, routes: routes(cfg), metrics: newMetrics(cfg.Metrics),
		nowhere: topics.Topic{Name: "nowhere", Key1: topickey.New(), Key2: topickey.New()},
	}
}

// API is what a frame serves.
func (d *Handler) API() frame.API {
	api := frame.API{Name: "eventgrid", Serves: Serves, Deliveries: true}
	api.Begin = func(c *frame.Call) frame.Exchange { return d.newCall(c) }
	for _, rt := range d.routes {
		api.Routes = append(api.Routes, rt.Route)
	}
	return api
}
