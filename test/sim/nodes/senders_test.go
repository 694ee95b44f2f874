package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// client is somebody outside who is connected to one node at a time.
type client struct {
	y    *yard
	rand *rand.Rand // of the goroutine that is the client, or under its lock
	at   *node
}

func (y *yard) client(name string) *client { return &client{y: y, rand: luck(y.plan.seed, name)} }

// node is the one that the client is connected to; nil: there is none.
func (c *client) node() *node {
	if c.at == nil || !c.at.serving.Load() {
		c.at = c.y.node(c.rand)
	}
	return c.at
}

// leaves has the client choose another node.
func (c *client) leaves() { c.at = nil }

// rests waits, and says whether to go on.
func rests(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// stored is a text as an event.
func stored(text string) eventlog.Event {
	m, err := message.Append(nil, event.Text(text))
	if err != nil {
		panic(err)
	}
	return eventlog.Event{Message: m}
}

// patience is how long senders wait for an answer.
const patience = time.Minute

// send sends one event after the other to a partition, each until it is acknowledged, until ctx ends.
// Each try has a text of its own.
func (y *yard) send(ctx context.Context, name string, partition int) {
	c := y.client(name)
	for number, try := 0, 0; rests(ctx, between(c.rand, 200*time.Millisecond, 3*time.Second)); try++ {
		text := fmt.Sprintf("%s/%d/%d", name, number, try)
		y.judge.tries(text)
		asking, cancel := context.WithTimeout(context.Background(), patience)
		n := c.node()
		p, err := call(asking, n, func(ctx context.Context) (broker.Published, error) {
			return n.broker.Publish(ctx, hubName, broker.Target{Partition: strconv.Itoa(partition)}, []eventlog.Event{stored(text)})
		}, nil)
		inVain := errors.Is(err, errGone) || errors.Is(err, eventlog.ErrUncertain) || asking.Err() != nil || errors.Is(err, context.Canceled)
		cancel()
		switch {
		case err == nil:
			y.judge.acknowledged(partition, text, int64(p.First))
			number++
		case inVain: // it may be stored
			y.judge.doubts()
			c.leaves()
		default:
			y.judge.refused(text)
			c.leaves()
		}
	}
}

// produce publishes to a partition with numbers of its own, each until it is acknowledged.
func (y *yard) produce(ctx context.Context, id int64, partition int) {
	name := fmt.Sprint("p", id)
	c := y.client(name)
	var p *broker.Producer
	for next := int32(0); rests(ctx, between(c.rand, 200*time.Millisecond, 4*time.Second)); {
		asking, cancel := context.WithTimeout(context.Background(), patience)
		n := c.node()
		if p == nil {
			cfg := broker.ProducerConfig{ID: &id, Epoch: new(int16(0)), Last: new(next - 1)}
			p, _ = call(asking, n, func(ctx context.Context) (*broker.Producer, error) {
				return n.broker.Producer(ctx, hubName, strconv.Itoa(partition), cfg)
			}, nil)
		}
		done, err := 0, errGone
		if producer, from, count := p, next, 1+c.rand.IntN(4); p != nil {
			done, err = call(asking, n, func(ctx context.Context) (int, error) { return burst(ctx, producer, name, from, count) }, nil)
		}
		for range done {
			y.judge.produced(partition, name, int(next))
			next++
		}
		if cancel(); err != nil {
			p = nil
			c.leaves()
		}
	}
}

// burst submits some events without waiting in between, and gives how many are known to be stored.
func burst(ctx context.Context, p *broker.Producer, name string, first int32, count int) (done int, err error) {
	var pending []*broker.Pending
	for i := range int32(count) {
		one, err := p.Submit(ctx, first+i, []eventlog.Event{stored(fmt.Sprintf("%s/%d", name, first+i))})
		if err != nil {
			break
		}
		pending = append(pending, one)
	}
	if len(pending) == 0 {
		return 0, errGone
	}
	for i, one := range pending {
		if _, wrong := one.Wait(ctx); wrong != nil && err == nil {
			done, err = i, wrong
		}
	}
	if err == nil {
		done = len(pending)
	}
	return done, err
}

// follow reads a partition at one node, whichever process it is, as it grows.
func (y *yard) follow(ctx context.Context, name string, partition int) {
	for next := int64(0); rests(ctx, time.Second); {
		n := y.named(name)
		_, _ = call(ctx, n, func(ctx context.Context) (int64, error) {
			return read(ctx, n, partition, next, -1, func(at int64, text string) { y.judge.read(name, partition, at, text) })
		}, nil)
		next = y.judge.followed(name, partition)
	}
}

// read reads at a node from a number on, up to an end if that is not negative, and gives where it stopped.
func read(ctx context.Context, n *node, partition int, next, end int64, each func(at int64, text string)) (int64, error) {
	c, err := n.broker.Cursor(ctx, hubName, broker.DefaultGroup, strconv.Itoa(partition), eventlog.At(eventlog.Sequence(next)))
	if err != nil {
		return next, err
	}
	defer c.Close()
	for end < 0 || next < end {
		run, err := c.Next(ctx)
		if err != nil {
			return next, err
		}
		if int64(run.First) != next {
			n.y.judge.fail("node %s gives event %d of partition %d to a reader at %d", n.name, run.First, partition, next)
		}
		for i, e := range run.Events {
			m, err := message.Decode(e.Message)
			if err != nil {
				return next, err
			}
			each(int64(run.First)+int64(i), string(m.Body))
		}
		next = int64(run.Next())
	}
	return next, nil
}
