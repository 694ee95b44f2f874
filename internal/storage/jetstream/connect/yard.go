package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Streams gives the names of all streams that a yard has on the servers: of entries, of bodies, of logs.
// It blocks until they have answered, or ctx ends.
func Streams(ctx context.Context, conn *nats.Conn, yard string) (names []string, err error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	list := js.StreamNames(ctx, jetstream.WithStreamListSubject("y."+yard+".>"))
	for name := range list.Name() {
		names = append(names, name)
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("%w: list the streams of yard %s: %w", ErrUnavailable, yard, err)
	}
	return names, nil
}

// DeleteStreams deletes streams, for good. That one is not there is no error.
func DeleteStreams(ctx context.Context, conn *nats.Conn, names []string) error {
	js, err := jetstream.New(conn)
	for _, name := range names {
		if err == nil {
			err = js.DeleteStream(ctx, name)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = nil
		}
	}
	return err
}
