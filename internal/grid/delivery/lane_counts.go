package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
)

// LaneCounts is what a subscription that is delivered here has come to since this node took it, for who
// looks often and must not wait.
type LaneCounts struct {
	Source       topics.Source
	Subscription string // its name
	// Delivered, Failed and Dead are events: those that failed count each time.
	Delivered, Failed, Dead int64
	// Waiting are those that are to be delivered and were not yet, as far as this process knows: in
	// memory, in retry logs and parked. What its topic's log has beyond is Behind.
	Waiting, Behind int64
	// Dropped is how many of the last hundred that were given up, without a target for dead letters, were
	// so within DroppedWithin.
	Dropped  int64
	Endpoint EndpointState
}

// DroppedWithin is how far back Dropped reaches.
const DroppedWithin = 15 * time.Minute

// Counts tells of all subscriptions that are delivered by this node. It does no I/O.
func (s *Service) Counts() []LaneCounts {
	lanes := s.allLanes()
	counts := make([]LaneCounts, 0, len(lanes))
	for _, l := range lanes {
		sub := l.termsNow().sub
		c := l.counted()
		c.Source, c.Subscription = sub.Source, sub.Name
		for _, w := range l.holding.logs.Waiting(l.id) {
			c.Waiting += w.Count
		}
		c.Waiting += l.parked.Peek()
		counts = append(counts, c)
	}
	return counts
}

// counted is what the lane itself knows.
func (l *lane) counted() LaneCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := LaneCounts{
		Delivered: l.counts.delivered, Failed: l.counts.sum(failed), Dead: l.counts.sum(buried),
		Waiting: int64(l.sending.inFlight + len(l.pull.held) + l.memory.queue.events + l.memory.chores()),
	}
	if len(l.drops.ring) > 0 {
		c.Dropped = l.drops.since(time.Now().Add(-DroppedWithin))
	}
	if l.endpoint != nil {
		c.Endpoint = l.endpoint.state(time.Now())
	}
	if o, ok := l.source.origin.(*topicOrigin); ok {
		next := int64(o.log.Peek().Next)
		for _, t := range l.tracks {
			looked := t.position
			if t.joined.Load() {
				looked = t.next()
			}
			c.Behind += max(0, next-looked)
		}
	}
	return c
}

// sum is over all names.
func (c *counts) sum(k kind) (n int64) {
	for _, v := range c.named[k] {
		n += v
	}
	return n
}
