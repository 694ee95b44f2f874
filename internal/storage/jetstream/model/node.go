package model

import (
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// link is the way between the servers and a node, however often its process is started. The
// cluster's lock guards it.
type link struct {
	since, until time.Time // when it is cut
	held         []*flight // what was sent into the cut
	thaw         time.Time // until when the node is frozen
}

func (l *link) frozen(now time.Time) bool { return l.thaw.After(now) }

func (l *link) cut(now time.Time) bool { return l.until.After(now) }

// lost: the cut has lasted so long that the node knows of it.
func (l *link) lost(now time.Time) bool { return l.cut(now) && now.Sub(l.since) >= noticed }

// reconnect has what was sent into a cut arrive, unless the connection was given up meanwhile.
func (c *Cluster) reconnect(l *link) {
	c.mu.Lock()
	now := time.Now()
	if l.cut(now) { // there was another cut
		c.mu.Unlock()
		return
	}
	held := l.held
	l.held = nil
	survived := l.until.Sub(l.since) < noticed
	c.mu.Unlock()
	for _, f := range held {
		if survived {
			c.arrive(f)
		}
	}
}

// Node is a connection to the servers. It is a streams.Storage.
type Node struct {
	c       *Cluster
	link    *link
	answers agenda // acknowledgements

	// Guarded by the cluster's lock.
	closed      bool
	sent, heard time.Time // when the newest message arrives there, and the newest answer here
	flights     []*flight // in the order of Publish
	listeners   []*listener
}

var _ streams.Storage = (*Node)(nil)

// Close ends the connection, as the end of a process does: what is under way is in doubt, and nothing
// is heard any more. It may be called again.
func (n *Node) Close() {
	c := n.c
	c.mu.Lock()
	n.closed = true
	open := n.flights
	for _, f := range open {
		f.settled = true
	}
	n.flights = nil
	n.listeners = nil
	c.nodes = slices.DeleteFunc(c.nodes, func(other *Node) bool { return other == n })
	c.mu.Unlock()
	for _, f := range open {
		f.done(0, streams.ErrUncertain)
	}
}

// connected: as far as the node knows.
func (n *Node) connected(now time.Time) bool { return !n.c.down.After(now) && !n.link.lost(now) }

// reachable: in truth.
func (n *Node) reachable(now time.Time) bool {
	return !n.closed && !n.c.down.After(now) && !n.link.cut(now)
}

// ask calls do at the servers, with the lock held, and gives its error, or why it was not called.
// What changes something may be done though the answer is lost.
func (n *Node) ask(ctx context.Context, changes bool, do func() error) error {
	defer n.awaitThaw()
	n.awaitThaw()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	way, err := n.question()
	if err != nil {
		return err
	}
	if err := sleep.For(ctx, way, nil); err != nil {
		return err
	}
	wait, err := n.asked(changes, do)
	if wait > 0 {
		if err := sleep.For(ctx, wait, nil); err != nil {
			return err
		}
	}
	return err
}

// awaitThaw waits while the node is frozen, whatever becomes of contexts: a process that stands still
// does not see that they end.
func (n *Node) awaitThaw() {
	for {
		n.c.mu.Lock()
		left := time.Until(n.link.thaw)
		n.c.mu.Unlock()
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}

// question draws how long a question is under way.
func (n *Node) question() (time.Duration, error) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	switch {
	case n.closed:
		return 0, streams.ErrClosed
	case !n.connected(time.Now()):
		return 0, streams.ErrUnavailable
	}
	return n.c.upTo(n.c.faults.Delay), nil
}

// asked gives the answer, and how long it takes.
func (n *Node) asked(changes bool, do func() error) (time.Duration, error) {
	c := n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n.closed:
		return 0, streams.ErrClosed
	case !n.reachable(time.Now()), c.happens(c.faults.Unavailable):
		return patience, streams.ErrUnavailable
	}
	err := do()
	if changes && c.happens(c.faults.AckLost) {
		return patience, streams.ErrUnavailable
	}
	return c.upTo(c.faults.Delay), err
}

// ofLeader calls do with a stream that somebody leads.
func (c *Cluster) ofLeader(name string, do func(*stream) error) func() error {
	return func() error {
		s := c.streams[name]
		switch {
		case s == nil:
			return streams.ErrNoStream
		case s.leaderless.After(time.Now()):
			return streams.ErrUnavailable
		}
		return do(s)
	}
}

// Make is streams.Storage's.
func (n *Node) Make(ctx context.Context, name string, cfg streams.Config) error {
	return n.ask(ctx, true, func() error {
		if n.c.streams[name] == nil {
			n.c.streams[name] = newStream(cfg, time.Now().Add(n.c.upTo(2*n.c.faults.Delay)))
		}
		return nil
	})
}

// Delete is streams.Storage's.
func (n *Node) Delete(ctx context.Context, name string) error {
	return n.ask(ctx, true, func() error {
		delete(n.c.streams, name)
		return nil
	})
}

// Names is streams.Storage's.
func (n *Node) Names(ctx context.Context) (names []string, err error) {
	err = n.ask(ctx, false, func() error {
		for name := range n.c.streams {
			names = append(names, name)
		}
		slices.Sort(names) // so that a run can be repeated
		return nil
	})
	return names, err
}

// Read is streams.Storage's.
func (n *Node) Read(ctx context.Context, name string, q streams.Query) (part streams.Part, err error) {
	err = n.ask(ctx, false, func() error {
		s := n.c.streams[name]
		switch {
		case s == nil:
			return streams.ErrNoStream
		case s.heardOf.After(time.Now()):
			return streams.ErrUnavailable
		}
		r, ok := s.present(time.Now(), n.c.rand.IntN)
		if !ok {
			return streams.ErrUnavailable
		}
		s.catchUp(r, time.Now().Add(-n.c.upTo(n.c.faults.Lag)))
		part = s.read(r, q)
		return nil
	})
	return part, err
}

// Last is streams.Storage's.
func (n *Node) Last(ctx context.Context, name, subject string) (m streams.Message, err error) {
	err = n.ask(ctx, false, n.c.ofLeader(name, func(s *stream) error {
		m, err = s.newest(subject)
		return err
	}))
	return m, err
}

// State is streams.Storage's.
func (n *Node) State(ctx context.Context, name string) (state streams.State, err error) {
	err = n.ask(ctx, false, n.c.ofLeader(name, func(s *stream) error {
		state = s.state(time.Now())
		return nil
	}))
	return state, err
}

// Purge is streams.Storage's.
func (n *Node) Purge(ctx context.Context, name, subject string, below streams.Seq) error {
	return n.ask(ctx, true, n.c.ofLeader(name, func(s *stream) error {
		s.purge(subject, below)
		return nil
	}))
}

// MaxMessageBytes is streams.Storage's.
func (n *Node) MaxMessageBytes() int { return maxMessageBytes }
