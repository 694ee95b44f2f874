package main

import (
	"context"
	"crypto/rand"
	"time"
)

// driver is how clients of one protocol use a server. What it connects to it closes again.
type driver interface {
	// create makes a topic, a stream or a queue.
	create(ctx context.Context, p peer, topic string, partitions int) error
	// remove deletes it with all that is in it.
	remove(ctx context.Context, p peer, topic string) error
	// producer is connected, and knows the topic, when it is returned.
	producer(ctx context.Context, p peer, topic string, l load) (producer, error)
	// consume reads so many events from the beginning of a topic, from connecting to the last.
	consume(ctx context.Context, p peer, topic string, l load, events int64) error
	// drains: what was consumed is gone, as from a queue.
	drains() bool
}

// producer sends to one topic, as one client.
type producer interface {
	// send goes on up to the limit, waits for what is under way, and gives how many events were acknowledged. An event
	// that was refused is an error.
	send(ctx context.Context, lim limit) (acknowledged int64, err error)
	close()
}

// load is what is sent.
type load struct {
	name       string
	eventBytes int
	batchBytes int // the most in a batch, where the protocol has any
}

// limit says when it is enough: whichever comes first. Zero is no limit.
type limit struct {
	period time.Duration
	events int64
}

// clock is a limit that has begun to run. One goroutine has it.
type clock struct {
	limit
	began time.Time
	n     int64
}

func (l limit) begin() *clock { return &clock{limit: l, began: time.Now()} }

// next tells whether another so many events are to be sent. The time is looked at now and then.
func (c *clock) next(events int64) bool {
	c.n += events
	if c.events > 0 && c.n > c.events {
		return false
	}
	look := c.n%64 < events
	return c.period == 0 || !look || time.Since(c.began) < c.period
}

// body is what events hold: random, so that nothing is gained by compressing it.
func (l load) body() []byte {
	b := make([]byte, l.eventBytes)
	_, _ = rand.Read(b)
	return b
}
