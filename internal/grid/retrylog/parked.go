package retrylog

import (
	"context"
	"fmt"
	"sync"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Parked is a durable queue of one subscription: first in, first out. Methods may be called by
// many goroutines at once, TryTake by one at a time.
type Parked struct {
	queue
	taking sync.Mutex
}

// Put stores pending deliveries; durable when it returns nil. What Logs.Put says of errors and of
// many pending deliveries at once holds here too. Of a parked log that was forgotten it is
// eventlog.ErrRemoved.
func (s *Parked) Put(ctx context.Context, deliveries []pending.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	return s.append(ctx, deliveries, func(_ int64, batch []pending.Delivery) {
		s.t.metrics.shelved.Add(float64(len(batch)))
	})
}

// TryTake gives up to limit next entries (and about maxBytes, but at least one) without
// waiting for any; none: empty. What it has given and is not done it does not give again, but
// a later process does.
func (s *Parked) TryTake(ctx context.Context, limit, maxBytes int) ([]Entry, error) {
	if !s.used.Load() {
		return nil, nil
	}
	s.taking.Lock()
	defer s.taking.Unlock()
	part, bounds, err := s.bounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("take from %s: %w", s.id, err)
	}
	if s.unread() >= int64(bounds.Next) {
		return nil, nil
	}
	from := eventlog.NewReader(part.Cursor, eventlog.Sequence(s.unread()))
	defer from.Close()
	var entries []Entry
	for size := 0; len(entries) < limit && (size < maxBytes || len(entries) == 0); {
		run, err := s.nextRun(ctx, from)
		if err != nil && len(entries) == 0 {
			return nil, fmt.Errorf("take from %s: %w", s.id, err)
		}
		if err != nil {
			break // it comes back with the next call, if it stays
		}
		if len(run.Events) == 0 {
			s.passTo(int64(from.At()))
			break
		}
		n := fitting(run.Events, limit-len(entries), maxBytes-size)
		for _, h := range s.hold(int64(run.First), run.Events[:n]) {
			entries = append(entries, h.entry())
			size += h.size - heldBytes
		}
		from.MoveTo(run.First + eventlog.Sequence(n))
	}
	return entries, nil
}

// fitting is how many of the events are within the limits: one at least.
func fitting(events []eventlog.Event, limit, maxBytes int) int {
	n := 1
	for size := len(events[0].Message); n < min(len(events), limit) && size < maxBytes; n++ {
		size += len(events[n].Message)
	}
	return n
}

// Len is how many were put and are not done; after a start those that were done out of order
// and not yet passed are among them. A parked log that was never used is not looked at.
func (s *Parked) Len(ctx context.Context) (int64, error) {
	if !s.used.Load() {
		return 0, nil
	}
	_, bounds, err := s.bounds(ctx)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", s.id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, int64(bounds.Next)-s.mark.Next()) + int64(s.mark.Open()), nil
}

// Peek is Len as far as this process knows, without I/O: of a log that is not open yet nothing.
func (s *Parked) Peek() int64 {
	if !s.used.Load() || !s.opening.TryLock() {
		return 0
	}
	part := s.part
	s.opening.Unlock()
	if part == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, int64(part.Peek().Next)-s.mark.Next()) + int64(s.mark.Open())
}

// bounds opens the log and tells what it holds.
func (s *Parked) bounds(ctx context.Context) (eventlog.Partition, eventlog.Bounds, error) {
	part, err := s.open(ctx)
	if err != nil {
		return nil, eventlog.Bounds{}, err
	}
	bounds, err := part.Bounds(ctx)
	return part, bounds, err
}
