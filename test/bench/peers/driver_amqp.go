package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// bareAMQP is go-amqp: durable messages one by one over one link, up to a window of them under way, to a queue or to
// the one partition of a hub.
type bareAMQP struct{}

const (
	amqpWindow = 1_000
	amqpCredit = 1_000
)

// amqpSession is a connection with one session.
type amqpSession struct {
	conn *amqp.Conn
	*amqp.Session
}

func (bareAMQP) dial(ctx context.Context, p peer) (*amqpSession, error) {
	options := &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()}
	switch p.about().kind {
	case "yard":
		options.SASLType = amqp.SASLTypePlain(auth.RootPolicy, auth.DevelopmentKey)
	case "rabbitmq":
		options.SASLType = amqp.SASLTypePlain("guest", "guest") // its own default
	}
	conn, err := amqp.Dial(ctx, "amqp://"+p.address("amqp"), options)
	if err != nil {
		return nil, err
	}
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &amqpSession{conn, session}, nil
}

// create makes a hub of one partition. Queues are made when somebody attaches to them.
func (bareAMQP) create(ctx context.Context, p peer, topic string, _ int) error {
	if p.about().kind != "yard" {
		return nil
	}
	return franz{}.create(ctx, p, topic, 1)
}

// remove deletes a hub. Artemis deletes a queue that was read empty by itself; RabbitMQ keeps it, empty.
func (bareAMQP) remove(ctx context.Context, p peer, topic string) error {
	if p.about().kind != "yard" {
		return nil
	}
	return franz{}.remove(ctx, p, topic)
}

func (bareAMQP) drains() bool { return true }

// target is where a topic is sent to.
func target(p peer, topic string) string {
	if p.about().kind == "rabbitmq" {
		return "/queue/" + topic
	}
	return topic
}

// amqpProducer sends one message again and again.
type amqpProducer struct {
	session *amqpSession
	sender  *amqp.Sender
	body    []byte
}

func (d bareAMQP) producer(ctx context.Context, p peer, topic string, l load) (producer, error) {
	session, err := d.dial(ctx, p)
	if err != nil {
		return nil, err
	}
	sender, err := session.NewSender(ctx, target(p, topic), nil)
	if err != nil {
		return nil, errors.Join(err, session.conn.Close())
	}
	return &amqpProducer{session, sender, l.body()}, nil
}

func (p *amqpProducer) close() { _ = p.session.conn.Close() }

func (p *amqpProducer) send(ctx context.Context, lim limit) (acknowledged int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	receipts := make(chan amqp.SendReceipt, amqpWindow)
	settled := make(chan error, 1)
	go func() {
		for receipt := range receipts {
			state, err := receipt.Wait(ctx)
			if _, ok := state.(*amqp.StateAccepted); err == nil && !ok {
				err = fmt.Errorf("a message was not accepted: %v", state)
			}
			if err != nil {
				cancel(err) // so that the sender does not wait for room
				settled <- err
				return
			}
			acknowledged++
		}
		settled <- nil
	}()
	for c := lim.begin(); c.next(1) && err == nil; {
		message := amqp.NewMessage(p.body)
		message.Header = &amqp.MessageHeader{Durable: true}
		var receipt amqp.SendReceipt
		if receipt, err = p.sender.SendWithReceipt(ctx, message, nil); err != nil {
			break
		}
		select {
		case receipts <- receipt:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	close(receipts)
	return acknowledged, errors.Join(<-settled, err)
}

func (d bareAMQP) consume(ctx context.Context, p peer, topic string, _ load, events int64) error {
	session, err := d.dial(ctx, p)
	if err != nil {
		return err
	}
	defer session.conn.Close()
	source, options := target(p, topic), &amqp.ReceiverOptions{Credit: amqpCredit}
	if p.about().kind == "yard" {
		source += "/ConsumerGroups/$Default/Partitions/0"
		options.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter("amqp.annotation.x-opt-offset > '-1'")}
	}
	receiver, err := session.NewReceiver(ctx, source, options)
	if err != nil {
		return err
	}
	for n := range events {
		message, err := receiver.Receive(ctx, nil)
		if err == nil {
			err = receiver.AcceptMessage(ctx, message)
		}
		if err != nil {
			return fmt.Errorf("after %d of %d messages: %w", n, events, err)
		}
	}
	// The link ends with its connection: RabbitMQ's plugin answers its end without saying that it is closed, for which
	// go-amqp would wait.
	return nil
}
