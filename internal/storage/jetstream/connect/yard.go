package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Streams gives the names of all streams that a yard has on the servers: of entries, of bodies, of logs;
// not those by which somebody checks the servers at the moment. It blocks until they have answered, or ctx
// ends.
func Streams(ctx context.Context, conn *nats.Conn, yard string) (names []string, err error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	list := js.StreamNames(ctx, jetstream.WithStreamListSubject("y."+yard+".>"))
	for name := range list.Name() {
		if !strings.HasPrefix(name, checkPrefix(yard)) {
			names = append(names, name)
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("%w: list the streams of yard %s: %w", ErrUnavailable, yard, err)
	}
	return names, nil
}

// Replicas tells how many servers keep a stream. ErrUnavailable: they do not answer.
func Replicas(ctx context.Context, conn *nats.Conn, name string) (int, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return 0, err
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("%w: ask for stream %s: %w", ErrUnavailable, name, err)
	}
	return stream.CachedInfo().Config.Replicas, nil
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
