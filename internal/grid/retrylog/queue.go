package retrylog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/watermark"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// putBytes is the most that is put as one batch, if it is more than one pending delivery.
	// Readers take in whole batches, so that it is also what a look ahead may be too large by.
	putBytes = 128 << 10
	// trimFromBytes is what a log must hold for trimming to be worth it: a log that is always
	// empty again would else begin a new file each time.
	trimFromBytes = 1 << 20
)

// queue is a log of pending deliveries with a cursor: what retry logs and parked logs have in
// common.
type queue struct {
	t     *Logs
	id    eventlog.PartitionID
	shape eventlog.Shape // the log's
	book  *book
	name  string // in the book
	// used: the book has a cursor of it. Without one there is no log.
	used atomic.Bool
	// opened is called once, before the first use, with the bounds of what is not done, and
	// finished for each entry that is done, with mu held. nil where nobody wants to know.
	opened   func(low, next int64)
	finished func(h *held)

	opening sync.Mutex
	part    eventlog.Partition // guarded by opening; nil before the first use

	mu      sync.Mutex
	mark    watermark.Mark // guarded by mu
	trimmed int64          // guarded by mu: what was last trimmed below
	// keep is from where on nothing is to be trimmed, done or not; guarded by mu.
	keep int64
	// waitMS is a retry log's wait. What was there at the start, up to oldEnd, may have been put
	// under other ladders, with oldWaitMS at least and oldLongestMS at most. All guarded by mu.
	waitMS, oldWaitMS, oldLongestMS, oldEnd int64
}

func (q *queue) init(t *Logs, id eventlog.PartitionID, shape eventlog.Shape, b *book, name string) {
	q.t, q.id, q.shape, q.book, q.name = t, id, shape, b, name
	_, known := b.find(name)
	q.used.Store(known)
}

// open makes the log ready at its first use.
func (q *queue) open(ctx context.Context) (eventlog.Partition, error) {
	q.opening.Lock()
	defer q.opening.Unlock()
	if q.part != nil {
		return q.part, nil
	}
	// First of all, since it fails where the log was removed for good.
	part, err := q.t.cfg.Engine.Partition(q.id)
	if err == nil {
		err = q.t.cfg.Engine.Provide(ctx, q.id.Log, q.shape)
	}
	if err != nil {
		return nil, err
	}
	at, known := q.book.find(q.name)
	if !known {
		at = q.cursor()
		if err := q.book.set(ctx, q.name, at); err != nil {
			return nil, err
		}
	}
	bounds, err := part.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	// A log can end before its cursor where power loss has cost what was acknowledged without a
	// sync. What is put next has those numbers again, and must not be taken for done: so the cursor
	// is moved back durably before anything is put.
	if at.Next > int64(bounds.Next) {
		q.t.log.Error("log of waiting events ends before its cursor: some that were not synced are lost",
			"log", q.id.String(), "cursor", at.Next, "next", int64(bounds.Next))
		at.Next = int64(bounds.Next)
		if err := q.book.set(ctx, q.name, at); err != nil {
			return nil, err
		}
	}
	low := max(at.Next, int64(bounds.First))
	q.mu.Lock()
	q.mark, q.trimmed, q.keep = watermark.At(low), 0, math.MaxInt64
	q.oldWaitMS, q.oldLongestMS = min(at.WaitMS, q.waitMS), max(at.WaitMS, at.LongestMS, q.waitMS)
	q.oldEnd = int64(bounds.Next)
	q.mu.Unlock()
	if q.opened != nil {
		q.opened(low, int64(bounds.Next))
	}
	q.part = part
	q.used.Store(true)
	q.book.follow(q)
	return part, nil
}

// remove removes the log and its cursor, for good. Nobody opens it meanwhile, who might write
// a cursor for what is gone.
func (q *queue) remove(ctx context.Context) error {
	q.opening.Lock()
	defer q.opening.Unlock()
	// The cursor goes last: as long as it is there, a removal that was cut short can be seen.
	if err := q.t.cfg.Engine.Remove(ctx, q.id.Log); err != nil {
		return err
	}
	return q.book.remove(ctx, q.name)
}

// cursor is what the book should have.
func (q *queue) cursor() cursor {
	q.mu.Lock()
	defer q.mu.Unlock()
	if low := q.mark.Low(); low < q.oldEnd {
		return cursor{Next: low, WaitMS: q.oldWaitMS, LongestMS: q.oldLongestMS}
	}
	return cursor{Next: q.mark.Low(), WaitMS: q.waitMS, LongestMS: q.waitMS}
}

// unread is the number of the next entry to be read.
func (q *queue) unread() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mark.Next()
}

// passTo passes what could not be read and has nothing behind it.
func (q *queue) passTo(position int64) {
	q.mu.Lock()
	q.mark.Pass(position)
	q.mu.Unlock()
}

// batchRoom is memory to encode a batch in.
type batchRoom struct {
	bytes  []byte
	events []eventlog.Event
}

var batchRooms = sync.Pool{New: func() any { return new(batchRoom) }}

// append stores pending deliveries, and calls stored with each batch once it is durable.
func (q *queue) append(ctx context.Context, deliveries []pending.Delivery, stored func(first int64, batch []pending.Delivery)) error {
	part, err := q.open(ctx)
	if err != nil {
		return fmt.Errorf("put into %s: %w", q.id, err)
	}
	room := batchRooms.Get().(*batchRoom)
	defer batchRooms.Put(room)
	for len(deliveries) > 0 {
		n := room.encode(deliveries)
		at, err := eventlog.Append(ctx, part, eventlog.Batch{Events: room.events})
		room.release()
		if err != nil {
			return fmt.Errorf("put into %s: %w", q.id, err)
		}
		stored(int64(at.First), deliveries[:n])
		deliveries = deliveries[n:]
	}
	return nil
}

// encode encodes the next batch, of one pending delivery at least, and gives how many it has.
func (r *batchRoom) encode(deliveries []pending.Delivery) (n int) {
	size := 0
	for ; n < len(deliveries); n++ {
		more := deliveries[n].Bytes() + eventlog.EventOverheadBytes
		if n > 0 && size+more > putBytes {
			break
		}
		size += more
	}
	if cap(r.bytes) < size {
		r.bytes = make([]byte, 0, size)
	}
	for i := range deliveries[:n] {
		before := len(r.bytes)
		r.bytes = deliveries[i].Append(r.bytes)
		r.events = append(r.events, eventlog.Event{Message: r.bytes[before:]})
	}
	return n
}

// release makes it ready for the next batch, and does not keep what a huge one needed.
func (r *batchRoom) release() {
	clear(r.events)
	r.events, r.bytes = r.events[:0], r.bytes[:0]
	if cap(r.bytes) > 2*putBytes {
		r.bytes = nil
	}
}

// held is one entry that was read and is not done.
type held struct {
	q        *queue
	number   int64
	delivery pending.Delivery
	// due is when it is handed out: as the pending delivery says, but for the clock having been
	// set. Of Run's goroutine.
	due  time.Time
	size int
	done bool // guarded by q.mu
}

func (h *held) entry() Entry { return Entry{Delivery: h.delivery, Done: h.finish} }

func (h *held) finish() {
	h.q.mu.Lock()
	if h.done {
		h.q.mu.Unlock()
		return
	}
	h.done = true
	h.q.mark.Finish(h.number)
	if h.q.finished != nil {
		h.q.finished(h)
	}
	h.q.mu.Unlock()
	signal(h.q.t.dirty)
}

// hold takes entries in: it copies them and holds the cursor for each. What is no pending delivery
// is passed, loudly: to wait for it to become one would hold up all others for ever. One that only
// a newer release can read is held, too, and never done: so that release finds it.
func (q *queue) hold(first int64, events []eventlog.Event) []*held {
	all := make([]*held, 0, len(events))
	kept := make([]int64, 0, len(events))
	for i := range events {
		number := first + int64(i)
		p, err := pending.Parse(bytes.Clone(events[i].Message))
		switch {
		case err == nil:
			all = append(all, &held{q: q, number: number, delivery: p, size: len(events[i].Message) + heldBytes})
		case errors.Is(err, pending.ErrNewer):
			q.t.log.Error("waiting event is kept for a newer release", "log", q.id.String(), "number", number, "error", err)
		default:
			q.damaged(number, number+1, err)
			continue
		}
		kept = append(kept, number)
	}
	q.mu.Lock()
	for _, number := range kept {
		q.mark.Begin(number)
	}
	q.mark.Pass(first + int64(len(events)))
	q.mu.Unlock()
	return all
}

// heldBytes is about what an entry in memory takes beside its stored bytes.
const heldBytes = 512

// nextRun gives the next run, without events at the end. What is damaged is passed, loudly.
func (q *queue) nextRun(ctx context.Context, from *eventlog.Reader) (eventlog.Run, error) {
	for {
		run, damage, err := from.Next(ctx)
		if damage == nil {
			return run, err
		}
		q.damaged(int64(damage.First), int64(damage.Next), damage)
	}
}

// damaged reports entries that cannot be read and are passed.
func (q *queue) damaged(first, next int64, err error) {
	q.t.metrics.damaged.Add(float64(next - first))
	q.t.log.Error("waiting events cannot be read and are passed",
		"log", q.id.String(), "first", first, "next", next, "error", err)
}

// trim lets the engine remove what the book no longer wants.
func (q *queue) trim(ctx context.Context) error {
	saved, _ := q.book.find(q.name)
	q.mu.Lock()
	below, trimmed := min(saved.Next, q.keep), q.trimmed
	q.mu.Unlock()
	if below <= trimmed {
		return nil
	}
	part, err := q.open(ctx)
	if err != nil {
		return err
	}
	bounds, err := part.Bounds(ctx)
	if err != nil || bounds.Bytes < trimFromBytes {
		return err
	}
	if err := part.Trim(ctx, eventlog.Sequence(below)); err != nil {
		return err
	}
	q.mu.Lock()
	q.trimmed = below
	q.mu.Unlock()
	return nil
}

// signal wakes whoever waits for the channel, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
