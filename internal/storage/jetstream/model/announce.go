package model

import (
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// listener is one call of Listen. The cluster's lock guards stopped.
type listener struct {
	subject string // a '*' at its end stands for anything
	heard   func(subject string, data []byte)
	inbox   *inbox // where answers go; nil: none come
	news    agenda
	stopped bool
}

// Announce is streams.Storage's.
func (n *Node) Announce(stream string, data []byte) { n.announce(stream, data) }

func (n *Node) announce(subject string, data []byte) {
	c := n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !n.reachable(now) {
		return
	}
	n.sent = later(later(n.sent, now.Add(c.upTo(c.faults.Delay))), n.link.thaw)
	for _, node := range c.nodes {
		for _, l := range node.listeners {
			if !l.hears(subject) || c.happens(c.faults.AnnouncementLost) {
				continue
			}
			when, copied := n.sent, slices.Clone(data)
			if c.happens(c.faults.Late) {
				when = when.Add(c.lateness())
			}
			l.news.at(when, func() { node.hear(l, subject, copied) })
		}
	}
}

func (l *listener) hears(subject string) bool {
	prefix, any := strings.CutSuffix(l.subject, "*")
	return subject == l.subject || any && strings.HasPrefix(subject, prefix)
}

// hear has a listener hear what has come to its node, once that is not frozen.
func (n *Node) hear(l *listener, subject string, data []byte) {
	n.c.mu.Lock()
	now := time.Now()
	if n.link.frozen(now) {
		l.news.at(n.link.thaw, func() { n.hear(l, subject, data) })
		n.c.mu.Unlock()
		return
	}
	deaf := l.stopped || !n.reachable(now)
	n.c.mu.Unlock()
	if !deaf {
		l.heard(subject, data)
	}
}

// Listen is streams.Storage's.
func (n *Node) Listen(stream string, heard func([]byte)) (stop func(), err error) {
	return n.listen(&listener{subject: stream, heard: func(_ string, data []byte) { heard(data) }})
}

func (n *Node) listen(l *listener) (stop func(), err error) {
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
