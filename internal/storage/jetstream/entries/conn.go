package entries

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/provide"
)

// Conn is what a store needs of a connection to the servers: what it calls of *nats.Conn, by the same
// names and with the same errors, and two methods more. All may be called by many goroutines at once.
// It is an interface for the sake of simulations: servers in memory run under a fake clock, and fail
// when they are told to.
type Conn interface {
	IsConnected() bool
	MaxPayload() int64
	NewInbox() string
	Publish(subject string, data []byte) error
	PublishRequest(subject, reply string, data []byte) error
	RequestMsgWithContext(ctx context.Context, msg *nats.Msg) (*nats.Msg, error)

	// Listen subscribes to a subject until stop is called. next waits for the next message; its errors
	// are those of nats.Subscription.NextMsgWithContext. One goroutine at a time calls it.
	Listen(subject string) (next func(context.Context) (*nats.Msg, error), stop func(), err error)
	// Stream gives how the stream of want's name is kept, and makes it as wanted where there is none.
	// Errors are those of package jetstream, and ctx's.
	Stream(ctx context.Context, want jetstream.StreamConfig) (jetstream.StreamConfig, error)
}

// natsConn is a connection to real servers.
type natsConn struct{ *nats.Conn }

func (c natsConn) Listen(subject string) (next func(context.Context) (*nats.Msg, error), stop func(), err error) {
	s, err := c.SubscribeSync(subject)
	if err != nil {
		return nil, nil, err
	}
	return s.NextMsgWithContext, func() { _ = s.Unsubscribe() }, nil
}

func (c natsConn) Stream(ctx context.Context, want jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return want, err
	}
	return provide.Stream(ctx, js, want)
}
