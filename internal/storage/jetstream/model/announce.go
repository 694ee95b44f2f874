package model

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// listener is one call of Listen. The cluster's lock guards stopped.
type listener struct {
	stream  string
	heard   func([]byte)
	news    agenda
	stopped bool
}

// Announce is streams.Storage's.
func (n *Node) Announce(stream string, data []byte) {
	c := n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !n.reachable(now) {
		return
	}
	n.sent = later(n.sent, now.Add(c.upTo(c.faults.Delay)))
	for _, node := range c.nodes {
		for _, l := range node.listeners {
			if l.stream != stream || c.happens(c.faults.AnnouncementLost) {
				continue
			}
			when, copied := n.sent, slices.Clone(data)
			if c.happens(c.faults.Late) {
				when = when.Add(c.lateness())
			}
			l.news.at(when, func() { node.hear(l, copied) })
		}
	}
}

// hear has a listener hear what has come to its node.
func (n *Node) hear(l *listener, data []byte) {
	n.c.mu.Lock()
	deaf := l.stopped || !n.reachable(time.Now())
	n.c.mu.Unlock()
	if !deaf {
		l.heard(data)
	}
}

// Listen is streams.Storage's.
func (n *Node) Listen(stream string, heard func([]byte)) (stop func(), err error) {
	l := &listener{stream: stream, heard: heard}
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if n.closed {
		return nil, streams.ErrClosed
	}
	n.listeners = append(n.listeners, l)
	return func() {
		n.c.mu.Lock()
		defer n.c.mu.Unlock()
		l.stopped = true
		n.listeners = slices.DeleteFunc(n.listeners, func(other *listener) bool { return other == l })
	}, nil
}
