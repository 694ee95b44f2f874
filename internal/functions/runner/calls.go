package runner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/functions"
)

// What a node remembers of calls: so many that went well and so many that did not, of all its functions. Of one
// with events that are not in a row it knows so many rows; of one that failed for single events so many of them, so
// much of each reason, and so much of all these reasons.
const (
	goodCalls      = 4096
	badCalls       = 1024
	maxCallRows    = 64
	maxSingled     = 32
	maxCallReason  = 200
	maxCallReasons = 2000
)

// CallQuery asks for the calls with one event, of all functions.
type CallQuery struct {
	Hub       string `json:"hub"`
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// Calls are those with one event that a node remembers, the oldest first.
type Calls struct {
	// Since is from when on it remembers all.
	Since time.Time `json:"since"`
	Calls []Call    `json:"calls"`
}

// Of gives those of one function.
func (c Calls) Of(function string) Calls {
	some := Calls{Since: c.Since, Calls: []Call{}}
	for _, call := range c.Calls {
		if strings.EqualFold(call.Function, function) {
			some.Calls = append(some.Calls, call)
		}
	}
	return some
}

// Call is what one came to, for one event.
type Call struct {
	Function string `json:"function"`

	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took"`
	Attempt int           `json:"attempt"`
	Events  int           `json:"events"`
	// Outcome is one of functions.Finding, cancelled (the partition was taken away meanwhile), or unknown: too many
	// events of the call have failed to know of each, or there were too many gaps between them to know whether this
	// one was in it.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// EventCalls gives the calls with one event by this node, as far as it remembers them, and names no nodes that do
// not answer: it asks none.
func (k *supervisor) EventCalls(_ context.Context, q CallQuery) (found Calls, missing []string, err error) {
	return k.calls.of(q), nil, nil
}

// JoinCalls puts together what several nodes remember.
func JoinCalls(all []Calls) Calls {
	joined := Calls{Calls: []Call{}}
	for _, c := range all {
		if c.Since.After(joined.Since) {
			joined.Since = c.Since
		}
		joined.Calls = append(joined.Calls, c.Calls...)
	}
	slices.SortFunc(joined.Calls, func(a, b Call) int { return a.Began.Compare(b.Began) })
	return joined
}

// callMemory remembers the newest calls of a node. It is lost when the node stops.
type callMemory struct {
	mu        sync.Mutex
	began     time.Time // guarded by mu, as all that follows
	good, bad callRing
}

// callRing has the newest calls of a kind; at is where the oldest is once it is full.
type callRing struct {
	all []remembered
	at  int
}

// remembered is one call of a function with some events of a partition.
type remembered struct {
	hub, partition string
	first, last    int64
	rows           []row // of all events, where they are not one
	rest           bool  // there are more rows behind
	call           Call  // of those that are not singled out
	single         map[int64]functions.Finding
	more           bool // others were singled out, too
}

// row are numbers of events without a gap.
type row struct{ first, last int64 }

func newCallMemory() *callMemory { return &callMemory{began: time.Now()} }

// heard is functions.Config.OnCall.
func (m *callMemory) heard(b *functions.Batch, e functions.Ended) {
	n := len(b.Events)
	if n == 0 {
		return
	}
	r := remembered{hub: b.Hub, partition: b.Partition, first: b.Events[0].Sequence, last: b.Events[n-1].Sequence}
	if r.last-r.first != int64(n-1) {
		r.rows, r.rest = rowsOf(b)
	}
	whole := e.Whole()
	r.call = Call{Function: b.Function, Began: e.Began.UTC(), Took: e.Took, Attempt: b.Attempt, Events: n, Outcome: whole.Outcome, Reason: cutReason(whole.Reason)}
	if e.Cancelled {
		r.call.Outcome, r.call.Reason = "cancelled", ""
	} else {
		r.single, r.more = singled(e)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Err == nil && !e.Cancelled {
		m.good.add(r, goodCalls)
	} else {
		m.bad.add(r, badCalls)
	}
}

// rowsOf are those of the events of a batch, and whether there are more than are remembered.
func rowsOf(b *functions.Batch) (rows []row, more bool) {
	for i := range b.Events {
		at := b.Events[i].Sequence
		switch n := len(rows); {
		case n > 0 && rows[n-1].last+1 == at:
			rows[n-1].last = at
		case n == maxCallRows:
			return rows, true
		default:
			rows = append(rows, row{at, at})
		}
	}
	return rows, false
}

// singled are the events of which a call says something of their own, and whether there are more of them.
func singled(e functions.Ended) (some map[int64]functions.Finding, more bool) {
	room := maxCallReasons
	for sequence, f := range e.Singled() {
		if len(some) == maxSingled {
			return some, true
		}
		if some == nil {
			some = map[int64]functions.Finding{}
		}
		if f.Reason = cutReason(f.Reason); len(f.Reason) > room {
			f.Reason = ""
		}
		room -= len(f.Reason)
		some[sequence] = f
	}
	return some, false
}

// cutReason gives the beginning of a text, which holds nothing of it that is larger.
func cutReason(text string) string {
	if len(text) <= maxCallReason {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:maxCallReason], "") + "…"
}

func (r *callRing) add(one remembered, most int) {
	if len(r.all) < most {
		r.all = append(r.all, one)
		return
	}
	r.all[r.at] = one
	r.at = (r.at + 1) % most
}

// oldest is from when on a ring that is full has all calls.
func (r *callRing) oldest(began time.Time, most int) time.Time {
	if len(r.all) < most {
		return began
	}
	return r.all[r.at].call.Began
}

func (m *callMemory) of(q CallQuery) Calls {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := Calls{Since: m.good.oldest(m.began, goodCalls), Calls: []Call{}}
	if since := m.bad.oldest(m.began, badCalls); since.After(found.Since) {
		found.Since = since
	}
	found.Since = found.Since.UTC()
	for _, ring := range []*callRing{&m.good, &m.bad} {
		for i := range ring.all {
			if one, ok := ring.all[i].with(q); ok {
				found.Calls = append(found.Calls, one)
			}
		}
	}
	slices.SortFunc(found.Calls, func(a, b Call) int { return a.Began.Compare(b.Began) })
	return found
}

// with is what a call came to for an event; false: it was not among its events.
func (r *remembered) with(q CallQuery) (Call, bool) {
	if q.Sequence < r.first || q.Sequence > r.last || r.partition != q.Partition || !strings.EqualFold(r.hub, q.Hub) {
		return Call{}, false
	}
	behind := r.rest && q.Sequence > r.rows[len(r.rows)-1].last // it may have been among them
	if r.rows != nil && !behind && !slices.ContainsFunc(r.rows, func(w row) bool { return w.first <= q.Sequence && q.Sequence <= w.last }) {
		return Call{}, false
	}
	call := r.call
	switch f, ok := r.single[q.Sequence]; {
	case ok:
		call.Outcome, call.Reason = f.Outcome, f.Reason
	case r.more, behind:
		call.Outcome, call.Reason = "unknown", ""
	}
	return call, true
}
