package delivery

import (
	"context"
	"slices"
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
	// Recent is how many milliseconds each of the newest requests took, at least 1, the oldest first; below zero: it
	// failed.
	Recent []int `json:"recent,omitempty"`
	// Locked is how many events pullers hold. No lock of theirs ends before LockEnds.
	Locked   int       `json:"locked,omitempty"`
	LockEnds time.Time `json:"lockEnds,omitzero"`
	// HeldKeys is how many keys of an ordered lane wait for an event of theirs that failed; Held are those that are
	// due first.
	HeldKeys int       `json:"heldKeys,omitempty"`
	Held     []HeldKey `json:"held,omitempty"`

	requests map[string]int64 // Attempts by outcome
}

// HeldKey is a key of an ordered lane that waits.
type HeldKey struct {
	Key string `json:"key"`
	// Attempts were made at its first event, which is tried again at Due; Behind are those that wait for it, as far as
	// they are in memory.
	Attempts int       `json:"attempts"`
	Due      time.Time `json:"due"`
	Behind   int       `json:"behind"`
}

// What Stats gives at most of recent requests and of held keys, and how much of a key: a stranger chooses it.
const (
	maxRecent   = 40
	maxHeldKeys = 20
	maxKeyShown = 256
)

// EndpointState is an endpoint's health, for people.
type EndpointState struct {
	State    retry.State   `json:"state"`
	Failures int           `json:"failures"`
	Last     retry.Outcome `json:"last,omitempty"`
	Since    time.Time     `json:"since,omitzero"`
	Until    time.Time     `json:"until,omitzero"`
}

func (s *Service) Stats(ctx context.Context, subscription string) (Stats, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return Stats{}, err
	}
	st, positions, parked := l.stats(time.Now())
	st.Waiting = append(st.Waiting, l.holding.logs.Waiting(subscription)...)
	for _, w := range st.Waiting {
		st.Oldest = earlier(st.Oldest, w.Oldest)
	}
	if parked {
		if st.Parked, err = l.parked.Len(ctx); err != nil {
			return Stats{}, err
		}
	}
	for p, at := range positions {
		if err := st.addBehind(ctx, l.source.origin, p, at); err != nil {
			return Stats{}, err
		}
	}
	return st, nil
}

// standing is where a lane is in one partition: below low everything is done, below looked
// everything has been looked at and is in memory or done.
type standing struct{ low, looked int64 }

// stats is what the lane itself knows, and whether there may be something on its parked log.
func (l *lane) stats(now time.Time) (st Stats, positions []standing, parked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &l.memory
	st = Stats{
		Matched: l.counts.matched, Delivered: l.counts.delivered, requests: l.counts.copy(requested),
		Failed: l.counts.copy(failed), Dropped: l.counts.copy(dropped), DeadLettered: l.counts.copy(buried),
		InFlight: l.sending.inFlight + len(l.pull.held), Queued: m.queue.events + m.chores(),
		Waiting: []retrylog.Waiting{}, Endpoint: EndpointState{State: retry.Well},
	}
	for _, n := range st.requests {
		st.Attempts += n
	}
	st.Recent, st.Locked = l.attempts.recent(), len(l.pull.held)
	if st.Locked > 0 {
		st.LockEnds = l.pull.nextLapse
	}
	st.HeldKeys, st.Held = m.queue.held()
	if l.endpoint != nil {
		st.Endpoint = l.endpoint.state(now)
	}
	// The oldest of what is not in the source's log any more, as far as it is in memory: what is on
	// the parked log of a lane that stands still is not older than the first.
	if l.stock.peeked != nil {
		st.Oldest = earlier(st.Oldest, l.stock.peeked.Published)
	}
	for i := range m.queue.ready.len() {
		if it := m.queue.ready.at(i); it.track == nil {
			st.Oldest = earlier(st.Oldest, it.Published)
		}
	}
	for _, it := range slices.Concat(l.stock.returning, m.expired) {
		st.Oldest = earlier(st.Oldest, it.Published)
	}
	for _, t := range l.tracks {
		looked := t.position
		if t.joined.Load() {
			looked = t.next()
		}
		positions = append(positions, standing{low: t.low(), looked: looked})
	}
	return st, positions, l.stock.any()
}

// addBehind counts what has not been looked at, and finds when the oldest that is not settled
// was published: that at the mark.
func (st *Stats) addBehind(ctx context.Context, o origin, partition int, at standing) error {
	first, next, err := o.bounds(ctx, partition)
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
	cursor, err := o.cursor(ctx, partition, at.low)
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	run, err := cursor.TryNext(ctx)
	if err == nil && len(run.Events) > 0 {
		st.Oldest = earlier(st.Oldest, run.Time)
	}
	return err
}
