package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
)

// TraceState is where an event is on its way to a subscription.
type TraceState string

const (
	// Behind: the subscription has not come to it yet.
	TraceBehind TraceState = "behind"
	// Queued: it is in memory, to be sent next or in its turn. Sending: a request with it is under
	// way. Locked: a client that pulls has it.
	TraceQueued  TraceState = "queued"
	TraceSending TraceState = "sending"
	TraceLocked  TraceState = "locked"
	// Waiting for its next attempt, in a retry log. Parked: it was due, and could not be sent.
	TraceWaiting TraceState = "waiting"
	TraceParked  TraceState = "parked"
	// Delivered and Dropped are known for as long as that is remembered. Settled: it is done with,
	// and nobody remembers how.
	TraceDelivered TraceState = "delivered"
	TraceDropped   TraceState = "dropped"
	TraceSettled   TraceState = "settled"
)

// Trace is what is known of one event on its way to one subscription, but for dead letters and
// filters.
type Trace struct {
	State TraceState `json:"state"`
	// Attempts is how many were made, History the newest that failed, Due when the next may be,
	// Alive what its time to live counts from; all as far as the event is on its way.
	Attempts int               `json:"attempts"`
	History  []pending.Attempt `json:"history,omitempty"`
	Due      time.Time         `json:"due,omitzero"`
	Alive    time.Time         `json:"alive,omitzero"`
	// Requests are those of the newest that carried it, the newest first.
	Requests []AttemptRecord `json:"requests,omitempty"`
	// Reason and At are of one that was dropped.
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// Ahead is how many events of the source are looked at before one that is Behind.
	Ahead int64 `json:"ahead,omitempty"`
	// Hold says why nothing is sent; empty: it is. Endpoint is the endpoint's health.
	Hold     string        `json:"hold,omitempty"`
	Endpoint EndpointState `json:"endpoint"`
	// Since is from when on requests are remembered, and Drops whether every event that was dropped
	// since Began is: then one that is TraceSettled, and was published later, was not.
	Since, Began time.Time
	Drops        bool
	// Whole: all that waits was looked at.
	Whole bool
}

// Trace finds an event of a subscription's source, by its number.
func (s *Service) Trace(ctx context.Context, subscription string, partition int, number int64) (Trace, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return Trace{}, err
	}
	if partition < 0 || partition >= len(l.tracks) {
		return Trace{}, ErrNotFound
	}
	// What moves while it is looked for may be found nowhere: then a second look finds it.
	var t Trace
	for range 2 {
		if t, err = l.trace(ctx, partition, number); err != nil || t.State != TraceSettled {
			break
		}
	}
	return t, err
}

func (l *lane) trace(ctx context.Context, partition int, number int64) (Trace, error) {
	is := func(p *pending.Delivery) bool {
		return p.Source == l.source.id && p.Partition == partition && p.Sequence == number
	}
	found, whole, err := l.holding.logs.Find(ctx, l.id, is)
	if err != nil {
		return Trace{}, err
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := Trace{Hold: l.terms.hold, Endpoint: EndpointState{State: retry.Well}, Whole: whole, Began: l.began, Drops: !l.drops.lost}
	if l.endpoint != nil {
		t.Endpoint = l.endpoint.state(now)
	}
	t.Requests, t.Since = l.attempts.of(partition, number, l.began)
	switch it, state := l.inMemoryLocked(is); {
	case it != nil:
		t.take(state, &it.Delivery)
		if state == TraceQueued && it.Due.After(now) {
			t.State = TraceWaiting // in ordered mode, in its place
		}
	case len(found) > 0:
		t.takeFound(found[len(found)-1], now)
	default:
		l.traceTrackLocked(&t, partition, number)
	}
	return t, nil
}

func (t *Trace) take(state TraceState, p *pending.Delivery) {
	t.State, t.Attempts, t.History, t.Due, t.Alive = state, p.Attempts, p.History, p.Due, p.Alive
}

// takeFound is of one in a log. One that was read, is due and in no queue is being sent.
func (t *Trace) takeFound(f retrylog.Found, now time.Time) {
	state := TraceWaiting
	switch {
	case f.Read && (f.Parked || !f.Due.After(now)):
		state = TraceSending
	case f.Parked:
		state = TraceParked
	}
	t.take(state, &f.Delivery)
}

// inMemoryLocked finds an event among what the lane has in memory, but for what is being sent.
func (l *lane) inMemoryLocked(is func(*pending.Delivery) bool) (*item, TraceState) {
	m := &l.memory
	for it := range m.queue.all {
		if is(&it.Delivery) {
			return it, TraceQueued
		}
	}
	for _, it := range slices.Concat(m.expired, m.lapsed) {
		if is(&it.Delivery) {
			return it, TraceQueued
		}
	}
	if it := l.stock.peeked; it != nil && is(&it.Delivery) {
		return it, TraceParked
	}
	for _, it := range l.stock.returning {
		if is(&it.Delivery) {
			return it, TraceParked
		}
	}
	for _, h := range l.pull.held {
		if is(&h.item.Delivery) {
			return h.item, TraceLocked
		}
	}
	return nil, ""
}

// traceTrackLocked judges by where the lane stands, and by what it remembers.
func (l *lane) traceTrackLocked(t *Trace, partition int, number int64) {
	track := l.tracks[partition]
	if d := l.drops.find(partition, number); d != nil {
		t.State, t.Reason, t.At, t.Attempts, t.History = TraceDropped, d.reason, d.at, d.attempts, d.history
		return
	}
	for _, r := range track.left {
		if r.n == number { // it was put down, and is read again when something can be sent
			t.State, t.Attempts, t.History, t.Due = TraceBehind, r.attempts, r.history, r.due
			return
		}
	}
	looked := track.position
	if track.joined.Load() {
		looked = track.next()
	}
	switch {
	case track.mark.Has(number):
		t.State = TraceSending
	case number >= max(looked, track.mark.Next()):
		t.State, t.Ahead = TraceBehind, number-looked
	case len(t.Requests) > 0 && t.Requests[0].Outcome == retry.Delivered:
		t.State, t.At = TraceDelivered, t.Requests[0].Time.Add(t.Requests[0].Took)
		t.Attempts = t.Requests[0].Attempt
	default:
		t.State = TraceSettled
	}
}

// of gives the requests that carried an event, the newest first, and since when they are remembered.
func (a *attempts) of(partition int, number int64, began time.Time) (all []AttemptRecord, since time.Time) {
	since = began
	for i := range a.ring {
		r := &a.ring[(a.next+len(a.ring)-1-i)%len(a.ring)]
		if r.of(partition, number) {
			all = append(all, *r)
		}
		if a.full {
			since = r.Time
		}
	}
	return all, since
}

// droppedEvent is an event that was given up, and is nobody's dead letter.
type droppedEvent struct {
	partition int
	number    int64
	reason    string
	at        time.Time
	attempts  int
	history   []pending.Attempt
}

// maxDrops is how many a lane remembers.
const maxDrops = 100

// drops are the newest of a lane, in a ring; lost: there were more. They are guarded by lane.mu.
type drops struct {
	ring []droppedEvent
	next int
	lost bool
}

func (t *tally) drop(reason string, items ...*item) {
	for _, it := range items[max(0, len(items)-maxDrops-1):] {
		t.drops = append(t.drops, droppedEvent{it.Partition, it.Sequence, reason, time.Now(), it.Attempts, it.History})
	}
}

func (d *drops) add(one droppedEvent) {
	if len(d.ring) < maxDrops {
		d.ring = append(d.ring, one)
		return
	}
	d.ring[d.next], d.lost = one, true
	d.next = (d.next + 1) % len(d.ring)
}

// since counts those that were dropped at or after a time, as far as they are remembered.
func (d *drops) since(t time.Time) (n int64) {
	for _, one := range d.ring {
		if !one.at.Before(t) {
			n++
		}
	}
	return n
}

func (d *drops) find(partition int, number int64) *droppedEvent {
	i := slices.IndexFunc(d.ring, func(one droppedEvent) bool { return one.partition == partition && one.number == number })
	if i < 0 {
		return nil
	}
	return &d.ring[i]
}
