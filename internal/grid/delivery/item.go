package delivery

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/tracing"
)

// item is a pending delivery in the memory of its lane: queued, under way, or held by a puller. It
// is one goroutine's at a time, handed on under the lane's lock.
type item struct {
	pending.Delivery
	// track is where its number is open; nil for one from a parked log or a retry log, which has
	// done.
	track *track
	done  func()
	body  *body
	// key is its line in ordered mode, if it stands in one.
	key   string
	lined bool
}

// bytes is what it counts for against the bounds of its lane.
func (it *item) bytes() int { return beside(&it.Delivery) + len(it.Event) }

// beside is what the item of a delivery takes beside its event, about.
func beside(p *pending.Delivery) int { return itemBytes + len(p.Trace.State) }

// arrival is an event that was read from the log: offered to lanes before its bytes are used
// for the next.
type arrival struct {
	source    string
	partition int
	n         int64
	time      time.Time
	form      schema.Form
	raw       []byte // borrowed
	body      *body  // the copy, made for the first lane that takes it
	hops      int
	trace     tracing.Context
}

func (a *arrival) item(l *lane, t *track) *item {
	b := l.s.budget
	if a.body == nil {
		a.body = newBody(b, slices.Clone(a.raw))
	}
	it := &item{track: t, body: a.body.share(), Delivery: pending.Delivery{
		Subscription: l.id, Source: a.source, Partition: a.partition, Sequence: a.n,
		Published: a.time, Alive: a.time, Hops: a.hops, Trace: a.trace, Form: a.form, Event: a.body.bytes,
	}}
	b.charge(beside(&it.Delivery))
	return it
}

// end lets go of the copy: the lanes that took it have shares of their own.
func (a *arrival) end(b *budget) {
	if a.body != nil {
		a.body.release(b)
		a.body = nil
	}
}

// itemOf makes the item of an entry from a parked log or a retry log.
func itemOf(b *budget, e retrylog.Entry) *item {
	b.charge(beside(&e.Delivery))
	return &item{Delivery: e.Delivery, done: e.Done, body: newBody(b, e.Event)}
}

func (it *item) free(b *budget) {
	b.release(beside(&it.Delivery))
	it.body.release(b)
}

// notifyDone reports entries of parked logs and retry logs as done. No lock is held.
func notifyDone(items []*item) {
	for _, it := range items {
		if it.done != nil {
			it.done()
		}
	}
}
