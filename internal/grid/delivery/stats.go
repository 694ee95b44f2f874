package delivery

import (
	"context"
	"maps"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
)

// Stats is what there is to know of a subscription, since the start where it counts.
type Stats struct {
	Matched      int64            `json:"matched"`
	Delivered    int64            `json:"delivered"`
	Attempts     int64            `json:"attempts"` // requests
	Failed       map[string]int64 `json:"failed"`   // events, by outcome
	Dropped      map[string]int64 `json:"dropped"`  // by reason
	DeadLettered map[string]int64 `json:"deadLettered"`
	InFlight     int              `json:"inFlight"`
	Queued       int              `json:"queued"`
	// Behind is how many events of the source have not been looked at for it yet.
	Behind  int64              `json:"behind"`
	Parked  int64              `json:"parked"`
	Waiting []retrylog.Waiting `json:"waiting"`
	// Oldest is when the oldest event that is not settled was published; zero: none.
	Oldest   time.Time     `json:"oldest,omitzero"`
	Endpoint EndpointState `json:"endpoint"`
}

// EndpointState is an endpoint's health, for people.
type EndpointState struct {
	State    retry.State   `json:"state"`
	Failures int           `json:"failures"`
	Last     retry.Outcome `json:"last,omitempty"`
	Since    time.Time     `json:"since,omitzero"`
	Until    time.Time     `json:"until,omitzero"`
}

// Stats tells it.
func (s *Service) Stats(ctx context.Context, subscription string) (Stats, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return Stats{}, err
	}
	st, positions := l.stats(time.Now())
	st.Waiting = append(st.Waiting, s.cfg.RetryLogs.Waiting(subscription)...)
	for _, w := range st.Waiting {
		st.older(w.Oldest)
	}
	if err := l.addParked(ctx, &st); err != nil {
		return Stats{}, err
	}
	for p, at := range positions {
		if err := l.addBehind(ctx, &st, p, at); err != nil {
			return Stats{}, err
		}
	}
	return st, nil
}

// standing is where a lane is in one partition.
type standing struct{ low, looked int64 }

// stats is what the lane itself knows.
func (l *lane) stats(now time.Time) (Stats, []standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := Stats{
		Matched: l.counts.matched, Delivered: l.counts.delivered,
		Failed: spelled(l.counts.failed), Dropped: spelled(l.counts.dropped), DeadLettered: spelled(l.counts.dead),
		InFlight: l.inFlight + len(l.pull.held), Queued: l.queue.events + len(l.expired) + len(l.lapsed),
		Waiting: []retrylog.Waiting{}, Endpoint: EndpointState{State: retry.Well},
	}
	for n := range maps.Values(l.counts.requests) {
		st.Attempts += n
	}
	if l.endpoint != nil {
		st.Endpoint = l.endpoint.state(now)
	}
	l.oldestEntryLocked(&st)
	positions := make([]standing, len(l.tracks))
	for p, t := range l.tracks {
		positions[p] = standing{low: t.low(), looked: t.looked()}
	}
	return st, positions
}

// oldestEntryLocked looks at what is not in the source's log any more, as far as it is in memory:
// what is on the parked log of a lane that stands still is not older than the first.
func (l *lane) oldestEntryLocked(st *Stats) {
	if l.stock.peeked != nil {
		st.older(l.stock.peeked.Published)
	}
	for i := range l.queue.ready.len() {
		if it := l.queue.ready.at(i); it.track == nil {
			st.older(it.Published)
		}
	}
	for _, it := range append(l.stock.returning[:len(l.stock.returning):len(l.stock.returning)], l.expired...) {
		st.older(it.Published)
	}
}

func spelled[K ~string](counts map[K]int64) map[string]int64 {
	m := make(map[string]int64, len(counts))
	for k, n := range counts {
		m[string(k)] = n
	}
	return m
}

func (st *Stats) older(t time.Time) {
	if !t.IsZero() && (st.Oldest.IsZero() || t.Before(st.Oldest)) {
		st.Oldest = t
	}
}

// addParked counts what is on the parked log.
func (l *lane) addParked(ctx context.Context, st *Stats) error {
	l.mu.Lock()
	any := l.stock.any()
	l.mu.Unlock()
	if !any {
		return nil
	}
	n, err := l.parked.Len(ctx)
	st.Parked = n
	return err
}

// addBehind counts what has not been looked at, and finds when the oldest that is not settled
// was published: that at the mark.
func (l *lane) addBehind(ctx context.Context, st *Stats, partition int, at standing) error {
	first, next, err := l.source.origin.bounds(ctx, partition)
	if err != nil {
		if ended(err) {
			return nil
		}
		return err
	}
	st.Behind += max(next-max(at.looked, first), 0)
	if at.low >= next {
		return nil
	}
	cursor, err := l.source.origin.cursor(ctx, partition, at.low)
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	run, err := cursor.TryNext(ctx)
	if err == nil && len(run.Events) > 0 {
		st.older(run.Time)
	}
	return err
}
