package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/webhook"
)

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

func (a *attempts) add(size int, r AttemptRecord) {
	if len(a.ring) < size {
		a.ring = append(a.ring, r)
		return
	}
	a.ring[a.next] = r
	a.next = (a.next + 1) % size
}

// Attempts gives the newest first.
func (s *Service) Attempts(subscription string) ([]AttemptRecord, error) {
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

// note remembers a request.
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
