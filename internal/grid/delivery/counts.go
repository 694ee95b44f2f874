package delivery

import (
	"context"
	"maps"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/webhook"
)

// kind is what is counted of events, by name: by outcome the first two, by reason the others.
type kind int

const (
	requested kind = iota // requests that were made
	failed                // events whose attempt failed
	dropped               // given up, without a target for dead letters
	buried                // dead-lettered
	kinds
)

// counts is what a lane has done since the start. The maps are made when there is something to
// count.
type counts struct {
	matched, delivered int64
	named              [kinds]map[string]int64
}

// tally is what a worker has to add to them.
type tally struct {
	delivered int64
	attempts  []AttemptRecord
	named     []count
}

type count struct {
	kind   kind
	name   string
	events int
}

func (t *tally) count(k kind, name string, events int) {
	t.named = append(t.named, count{k, name, events})
}

func (c *counts) add(t *tally) {
	c.delivered += t.delivered
	for i := range t.attempts {
		c.addNamed(requested, string(t.attempts[i].Outcome), 1)
	}
	for _, n := range t.named {
		c.addNamed(n.kind, n.name, n.events)
	}
}

// copy is never nil, since people are shown it.
func (c *counts) copy(k kind) map[string]int64 {
	m := make(map[string]int64, len(c.named[k]))
	maps.Copy(m, c.named[k])
	return m
}

func (c *counts) addNamed(k kind, name string, n int) {
	if n == 0 {
		return
	}
	if c.named[k] == nil {
		c.named[k] = make(map[string]int64)
	}
	c.named[k][name] += int64(n)
}

// AttemptRecord is one request that was made.
type AttemptRecord struct {
	Time    time.Time     `json:"time"`
	Events  int           `json:"events"`
	EventID string        `json:"eventId"` // of the first event
	Attempt int           `json:"attempt"` // of the first event, from 1
	Outcome retry.Outcome `json:"outcome"`
	Status  int           `json:"status,omitempty"`
	Took    time.Duration `json:"took"`
	Head    string        `json:"head,omitempty"`
	Err     string        `json:"error,omitempty"`
	// Next is when the first event is tried again; zero: not.
	Next time.Time `json:"next,omitzero"`
}

// attempts is the newest of a lane, in a ring that is made when there is something to keep.
type attempts struct {
	ring []AttemptRecord
	next int
}

// Attempts gives the newest first.
func (s *Service) Attempts(_ context.Context, subscription string) ([]AttemptRecord, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &l.attempts
	all := make([]AttemptRecord, 0, len(a.ring))
	for i := range a.ring {
		all = append(all, a.ring[(a.next+len(a.ring)-1-i)%len(a.ring)])
	}
	return all, nil
}

func (b *batch) note(first *item, r webhook.Result, events int, next time.Time) {
	attempt := first.Attempts
	if r.Outcome == retry.Delivered || r.Outcome == retry.PayloadTooLarge && events > 1 {
		attempt++ // it was not counted there
	}
	b.tally.attempts = append(b.tally.attempts, AttemptRecord{
		Time: r.Began, Events: events, EventID: eventID(first), Attempt: attempt,
		Outcome: r.Outcome, Status: r.Status, Took: r.Took, Head: string(r.Head), Err: r.Err, Next: next,
	})
	b.lane.s.metrics.took.Observe(r.Took.Seconds())
}

// eventID reads the id that the publisher gave.
func eventID(it *item) string {
	var e schema.Envelope
	if err := e.Scan(it.Form, it.Event); err != nil {
		return ""
	}
	return string(e.ID)
}
