package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// jetStream is NATS' own client: asynchronous publishing with a window, to one stream of one subject.
type jetStream struct{}

const (
	natsWindow = 4_096
	natsPull   = 4_096
)

func (jetStream) dial(p peer) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := nats.Connect("nats://" + p.address("nats"))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(natsWindow))
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, js, nil
}

func (d jetStream) create(ctx context.Context, p peer, topic string, _ int) error {
	conn, js, err := d.dial(p)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: topic, Subjects: []string{topic}, Storage: jetstream.FileStorage, Replicas: 1})
	return err
}

func (d jetStream) remove(ctx context.Context, p peer, topic string) error {
	conn, js, err := d.dial(p)
	if err != nil {
		return err
	}
	defer conn.Close()
	return js.DeleteStream(ctx, topic)
}

func (jetStream) drains() bool { return false }

type natsProducer struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	subject string
	body    []byte
}

func (d jetStream) producer(ctx context.Context, p peer, topic string, l load) (producer, error) {
	conn, js, err := d.dial(p)
	if err != nil {
		return nil, err
	}
	one := &natsProducer{conn, js, topic, l.body()}
	if _, err := js.Publish(ctx, topic, one.body); err != nil {
		one.close()
		return nil, err
	}
	return one, nil
}

func (p *natsProducer) close() { p.conn.Close() }

func (p *natsProducer) send(ctx context.Context, lim limit) (acknowledged int64, err error) {
	// Acknowledgements come in order, so the oldest is waited for when the window is full.
	under := make([]jetstream.PubAckFuture, 0, natsWindow)
	settle := func(n int) error {
		for _, future := range under[:n] {
			select {
			case <-future.Ok():
				acknowledged++
			case err := <-future.Err():
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		under = append(under[:0], under[n:]...)
		return nil
	}
	for c := lim.begin(); c.next(1); {
		if len(under) == natsWindow {
			if err := settle(natsWindow / 2); err != nil {
				return acknowledged, err
			}
		}
		future, err := p.js.PublishAsync(p.subject, p.body)
		if err != nil {
			return acknowledged, err
		}
		under = append(under, future)
	}
	return acknowledged, settle(len(under))
}

func (d jetStream) consume(ctx context.Context, p peer, topic string, _ load, events int64) error {
	conn, js, err := d.dial(p)
	if err != nil {
		return err
	}
	defer conn.Close()
	consumer, err := js.OrderedConsumer(ctx, topic, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	n := int64(0) // the callback's alone
	reading, err := consumer.Consume(func(jetstream.Msg) {
		if n++; n == events {
			ended <- nil
		}
	}, jetstream.PullMaxMessages(natsPull), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		select {
		case ended <- fmt.Errorf("read stream %s: %w", topic, err):
		default:
		}
	}))
	if err != nil {
		return err
	}
	defer reading.Stop()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), fmt.Errorf("stream %s was not read to its end", topic))
	}
}
