package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
)

// plainClient publishes to JetStream as a program does that knows no yard, over a connection like
// that of a node: each publisher waits for its acknowledgement before it publishes again. It does
// without the client's own layer for JetStream, which costs more for each message, unless that is asked for.
type plainClient struct {
	conns   *connect.Conns
	js      jetstream.JetStream
	library jetstream.JetStream // over the connection that publishes
	used    int                 // spells
}

func dialPlain(ctx context.Context, servers *natsServers) (*plainClient, error) {
	conns, err := connect.Dial(ctx, servers.config("plain"))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conns.Control)
	library, err2 := jetstream.New(conns.Publish)
	if err = errors.Join(err, err2); err != nil {
		conns.Close()
		return nil, err
	}
	return &plainClient{conns: conns, js: js, library: library}, nil
}

func (c *plainClient) close() { c.conns.Close() }

// publishes makes streams, publishes to them and deletes them.
func (c *plainClient) publishes(name string, s spread) contender {
	return c.publishesBy(name, s, c.publish)
}

// publishesByLibrary does so as users of the client library would: by its Publish.
func (c *plainClient) publishesByLibrary(name string, s spread) contender {
	return c.publishesBy(name, s, func(ctx context.Context, subject string, message []byte) error {
		_, err := c.library.Publish(ctx, subject, message)
		return err
	})
}

func (c *plainClient) publishesBy(name string, s spread, publish func(ctx context.Context, subject string, message []byte) error) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (t tally, err error) {
		c.used++
		for i := range s.streams {
			stream := fmt.Sprintf("plain-%d-%d", c.used, i)
			if _, err := c.js.CreateStream(ctx, jetstream.StreamConfig{
				Name: stream, Subjects: []string{fmt.Sprintf("plain.%d.%d.*", c.used, i)}, Storage: jetstream.FileStorage, Replicas: replicas,
			}); err != nil {
				return tally{}, err
			}
			defer func() { err = errors.Join(err, c.js.DeleteStream(context.WithoutCancel(ctx), stream)) }()
		}
		subjects := make([]string, s.partitions)
		for p := range subjects {
			subjects[p] = fmt.Sprintf("plain.%d.%d.%d", c.used, p%s.streams, p)
		}
		for _, subject := range subjects {
			if err := c.awaitLeader(ctx, subject); err != nil {
				return tally{}, err
			}
		}
		messages := make([][]byte, s.senders*s.ahead)
		for w, bodies := range s.bodies() {
			messages[w] = slices.Concat(bodies...)
		}
		return driveTimed(ctx, lim, s.job(func(ctx context.Context, w int) error {
			return publish(ctx, subjects[s.partition(w)], messages[w])
		}))
	}}
}

func (c *plainClient) publish(ctx context.Context, subject string, message []byte) error {
	answer, err := c.conns.Publish.RequestWithContext(ctx, subject, message)
	if err != nil {
		return err
	}
	_, err = answers.ReadAck(answer.Data)
	return err
}

// awaitLeader publishes something small until it is taken: not every server knows at once who leads a
// new stream.
func (c *plainClient) awaitLeader(ctx context.Context, subject string) error {
	for {
		err := c.publish(ctx, subject, []byte("first"))
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		if err := sleep.About(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
