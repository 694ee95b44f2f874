package v1

import (
	"context"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Grid is what the listener asks of the services of the grid; all three are there, or none.
type Grid struct {
	Topics   Topics
	Delivery Delivery
	Dead     DeadLetters
	// Endpoint is the URL at which a topic is published to, with TLS or without, as a client
	// reaches it who sent this request; empty where there is no such listener. ValidationURL is the
	// link that completes a handshake.
	Endpoint      func(r *http.Request, topic string, tls bool) string
	ValidationURL func(s topics.Subscription, token string) string
}

// Topics keeps the definitions.
type Topics interface {
	CreateTopic(ctx context.Context, cfg topics.TopicConfig) (topics.Topic, error)
	UpdateTopic(ctx context.Context, name string, change func(*topics.Topic) error) (topics.Topic, error)
	Topic(name string) (topics.Topic, error)
	Topics() []topics.Topic
	DomainTopics(domain string) ([]string, error)
	DeleteTopic(ctx context.Context, name string) error
	RegenerateKey(ctx context.Context, topic, key string) (topics.Topic, error)
	Log(t *topics.Topic) (eventlog.Partition, error)

	Create(ctx context.Context, source topics.Source, name string, s topics.Settings) (topics.Subscription, error)
	Update(ctx context.Context, source topics.Source, name string, change func(*topics.Settings) error) (topics.Subscription, error)
	Find(source topics.Source, name string) (topics.Subscription, error)
	Subscriptions(source topics.Source) ([]topics.Subscription, error)
	Delete(ctx context.Context, source topics.Source, name string) error
	RotateKey(ctx context.Context, source topics.Source, name, algorithm string, overlap time.Duration) (topics.Subscription, error)
}

// Delivery delivers.
type Delivery interface {
	Stats(ctx context.Context, subscription string) (delivery.Stats, error)
	Attempts(ctx context.Context, subscription string) ([]delivery.AttemptRecord, error)
	Probe(ctx context.Context, subscription string) error
	Trace(ctx context.Context, subscription string, partition int, number int64) (delivery.Trace, error)
}

// DeadLetters keeps what could not be delivered.
type DeadLetters interface {
	List(ctx context.Context, subscription string, q deadletter.Query) (deadletter.Page, error)
	Get(ctx context.Context, subscription string, number int64) (deadletter.Letter, error)
	Redrive(ctx context.Context, subscription string, q deadletter.Query, o deadletter.RedriveOptions) (deadletter.Redriven, error)
	Purge(ctx context.Context, subscription string, q deadletter.Query) (int, error)
	Counts(ctx context.Context, subscription string) (deadletter.Counts, error)
}

var (
	_ Topics      = (*topics.Registry)(nil)
	_ Delivery    = (*delivery.Service)(nil)
	_ DeadLetters = (*deadletter.Service)(nil)
	_ Delivery    = (*forward.Forwarder)(nil)
	_ DeadLetters = (*forward.Forwarder)(nil)
)
