package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
)

// job is what a worker does.
type job int

const (
	jobNone job = iota
	jobSend
	jobExpire
	jobLapse
)

// batch is what a worker has in hand, and what has come of it. It is the worker's alone; what
// concerns the lane is told to it by settleLocked.
type batch struct {
	lane  *lane
	shift shift
	job   job
	// terms are those that held when the batch was taken.
	terms    *terms
	endpoint *endpoint
	// probe: this is the one request that probation allows; probed: it was. held: the lane stands
	// still.
	probe, probed, held bool
	items               []*item
	deliveries          []*pending.Delivery // what of it is being sent
	// late are finished, but the entries among them have not been told: it is done without the
	// lane's lock.
	late []*item

	// finished are done with; back were not sent after all; again are sent again when they are
	// due, in ordered mode.
	finished, back, again []*item
	tally                 tally
}

// take moves up to choreEvents from a list.
func (b *batch) take(from *[]*item) bool {
	n := min(len(*from), choreEvents)
	b.items = append(b.items, (*from)[:n]...)
	if *from = (*from)[n:]; len(*from) == 0 {
		*from = nil
	}
	return n > 0
}

// finish is the end of items whose fate is durable. Entries of parked logs and retry logs hear of it at
// once, the lane with settleLocked.
func (b *batch) finish(items ...*item) {
	notifyDone(items)
	b.finished = append(b.finished, items...)
}

// settleLocked tells the lane what has come of the batch.
func (b *batch) settleLocked(now time.Time) {
	l := b.lane
	if b.job == jobSend {
		l.sending.inFlight -= len(b.items)
		if b.probed && b.endpoint == l.endpoint {
			l.sending.probeSent = false
		}
	}
	if l.gone { // nobody wants to hear of them again
		b.late = append(append(b.late, b.back...), b.again...)
		b.finished = append(b.finished, b.late...)
		b.back, b.again = nil, nil
	}
	for _, it := range b.finished {
		l.finishLocked(it, now)
	}
	for i := len(b.back) - 1; i >= 0; i-- {
		l.memory.queue.back(b.back[i])
	}
	for _, it := range b.again {
		l.memory.queue.wait(it)
	}
	for _, list := range []*[]*item{&b.finished, &b.back, &b.again} {
		clear(*list)
		*list = (*list)[:0]
	}
	l.counts.add(&b.tally)
	for i := range b.tally.attempts {
		l.attempts.add(l.s.cfg.Attempts, b.tally.attempts[i])
	}
	b.tally.clear()
}
