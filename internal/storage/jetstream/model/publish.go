package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// flight is one message on its way. The cluster's lock guards settled.
type flight struct {
	n               *Node
	stream, subject string
	data            []byte
	expect          *streams.Seq // of a stream that keeps the newest message of each subject; nil: any
	ackLost, twice  bool
	done            func(streams.Seq, error)
	settled         bool
}

// Publish is streams.Storage's.
func (n *Node) Publish(stream, subject string, data []byte, done func(streams.Seq, error)) {
	if err := n.handOver(&flight{n: n, stream: stream, subject: subject, data: slices.Clone(data), done: done}); err != nil {
		done(0, err)
	}
}

// handOver draws a message's fate, or says why it is not handed over.
func (n *Node) handOver(f *flight) error {
	c := n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case n.closed:
		return streams.ErrClosed
	case !n.connected(now):
		return streams.ErrUnavailable
	case len(f.data) > maxMessageBytes:
		return fmt.Errorf("%w: a message of %d bytes, and the servers take %d", streams.ErrNoSpace, len(f.data), maxMessageBytes)
	}
	n.flights = append(n.flights, f)
	n.answers.at(now.Add(patience), func() { c.settle(f, 0, streams.ErrUncertain) })
	n.sent = later(later(n.sent, now.Add(c.upTo(c.faults.Delay))), n.link.thaw)
	switch f.ackLost = c.happens(c.faults.AckLost); {
	case c.happens(c.faults.Lost):
	case f.expect != nil && c.happens(c.faults.Unavailable/2):
		n.answer(f, 0, errBusy)
	case c.happens(c.faults.Unavailable):
		n.answer(f, 0, streams.ErrUnavailable)
	case c.happens(c.faults.NoSpace):
		n.answer(f, 0, streams.ErrNoSpace)
	case c.happens(c.faults.Late):
		c.arrivals.at(n.sent.Add(c.lateness()), func() { c.arrive(f) })
	default:
		c.arrivals.at(n.sent, func() { c.arrive(f) })
		if f.twice = c.happens(c.faults.Twice); f.twice {
			c.arrivals.at(n.sent.Add(c.lateness()), func() { c.arrive(f) })
		}
	}
	return nil
}

// arrive stores a message, or does what servers do that cannot.
func (c *Cluster) arrive(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if l := f.n.link; l.cut(now) {
		l.held = append(l.held, f)
		return
	}
	s := c.streams[f.stream]
	switch {
	case c.down.After(now):
		c.strand(f, c.down)
	case s == nil, s.heardOf.After(now): // servers cannot tell this from a stream that nobody leads
		f.n.answer(f, 0, streams.ErrUnavailable)
	case s.leaderless.After(now):
		if c.rand.IntN(2) == 0 {
			f.n.answer(f, 0, streams.ErrUnavailable)
		} else {
			c.strand(f, s.leaderless)
		}
	default:
		seq, err := s.store(f.subject, f.data, f.expect, now)
		if err == nil && c.stored != nil {
			c.stored(f.stream, streams.Message{Seq: seq, Subject: f.subject, Data: f.data})
		}
		if !f.ackLost {
			f.n.answer(f, seq, err)
		}
	}
}

// strand leaves a message with servers that cannot answer. Some have it when they are back at work.
func (c *Cluster) strand(f *flight, until time.Time) {
	f.ackLost = true
	if c.rand.IntN(2) == 0 {
		c.arrivals.at(until.Add(c.upTo(time.Second)), func() { c.arrive(f) })
	}
}

// answer sends word of a message back to its node. That one of two copies was refused says nothing
// of the other.
func (n *Node) answer(f *flight, seq streams.Seq, err error) {
	if f.twice && err != nil {
		return
	}
	n.heard = later(n.heard, time.Now().Add(n.c.upTo(n.c.faults.Delay)))
	n.answers.at(n.heard, func() { n.c.settle(f, seq, err) })
}

// settle calls done, once. An answer is lost where its node is cut off, or the servers are gone, and
// waits while it is frozen.
func (c *Cluster) settle(f *flight, seq streams.Seq, err error) {
	c.mu.Lock()
	if f.n.link.frozen(time.Now()) {
		f.n.answers.at(f.n.link.thaw, func() { c.settle(f, seq, err) })
		c.mu.Unlock()
		return
	}
	heard := err == streams.ErrUncertain || f.n.reachable(time.Now())
	if f.settled || !heard {
		c.mu.Unlock()
		return
	}
	f.settled = true
	if i := slices.Index(f.n.flights, f); i >= 0 {
		f.n.flights = slices.Delete(f.n.flights, i, i+1)
	}
	c.mu.Unlock()
	f.done(seq, err)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
