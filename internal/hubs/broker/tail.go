package broker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// tail knows the newest event that readers can be given of a partition with transactions. Behind it there may be what
// ends a transaction, what was aborted, and what is not decided yet: numbers without events, for good or for now. Who
// waits for the newest event, or counts those up to it, must not take one of these for it.
//
// It is made when this node first hears of a transaction in the partition, and looks forward from there, at headers
// alone; other partitions have none. One that hears of an older transaction which is not decided begins anew there.
type tail struct {
	// from is the number that it has to look from.
	from atomic.Int64
	// known is what was found last; nil: nothing was looked at yet.
	known atomic.Pointer[reach]
	// asked: somebody wants a look, and waits for none.
	asked atomic.Bool
	// turn has room for who looks: scan is theirs, nil while nothing was looked at.
	turn chan struct{}
	scan *scan
}

// reach is how far a partition can be read.
type reach struct {
	// from and end bound what was looked at.
	from, end eventlog.Sequence
	// last is the newest event that can be given, time when it was enqueued.
	last eventlog.Sequence
	time time.Time
	// stable is the first number of a transaction that is not decided; where there is none, the end.
	stable eventlog.Sequence
	// found is when that was so.
	found time.Time
}

// scan goes forward over what readers can be given.
type scan struct {
	fates *Fates
	open  func(context.Context, eventlog.Position) (eventlog.Cursor, error)
	// from is where it began, next where it goes on, last the newest event it has met; eventlog.NoSequence: none.
	from, next, last eventlog.Sequence
}

// tailSlot is where the tail of a partition is, if it has one.
type tailSlot struct {
	tail atomic.Pointer[tail]
	// ended: what stood at the end when the partition was first asked for was looked at.
	ended atomic.Bool
}

// stepsBack is how many times farther back each search for an event begins than the one before.
const stepsBack = 16

// transacted notes that there is something of a transaction in a partition, and that what is not decided of it lies at
// a number or behind it.
func (h *hub) transacted(number int, at eventlog.Sequence) *tail {
	slot := &h.tails[number].tail
	t := slot.Load()
	if t == nil {
		t = &tail{turn: make(chan struct{}, 1)}
		t.from.Store(int64(at))
		if !slot.CompareAndSwap(nil, t) {
			t = slot.Load()
		}
	}
	for {
		from := t.from.Load()
		if from <= int64(at) || t.from.CompareAndSwap(from, int64(at)) {
			return t
		}
	}
}

// begin is transacted for who is about to write to a partition.
func (h *hub) begin(ctx context.Context, number int) error {
	if h.tails[number].tail.Load() != nil {
		return nil
	}
	bounds, err := h.partitions[number].Bounds(ctx)
	if err == nil {
		h.transacted(number, bounds.Next)
	}
	return err
}

// Transacted notes that a transaction writes to a partition of a log, from a number on: the sooner all nodes hear of it the
// less they have to look for. It does no I/O.
func (f *Frames) Transacted(log string, partition int, from eventlog.Sequence) {
	if h := f.broker.hubs.byLog()[log]; h != nil && partition < len(h.tails) {
		h.transacted(partition, from)
	}
}

// LastStable gives where readers of what is committed end, as far as this node has heard of transactions, without asking who
// coordinates them: the first number of one that is not decided. What has come since it was last asked is looked at. Errors as
// for RawCursor.
func (f *Frames) LastStable(ctx context.Context, hub, partition string) (eventlog.Sequence, error) {
	h, number, err := f.broker.locate(ctx, hub, partition)
	if err != nil {
		return 0, err
	}
	bounds, err := h.partitions[number].Bounds(ctx)
	if err != nil {
		return 0, f.broker.gone(h, fmt.Errorf("read %s/%d: %w", h.Name, number, err))
	}
	bounds = h.begins(number, bounds)
	t, err := h.tailOf(ctx, number, bounds)
	if err != nil || t == nil {
		return bounds.Next, err
	}
	k, err := t.look(ctx, h, number, bounds)
	return k.stable, err
}

// ofTransaction: it is something of a transaction.
func ofTransaction(form eventlog.Form) bool {
	return form == eventlog.FormControl || form == eventlog.FormTransaction
}

// tailOf gives the tail of a partition; nil where nobody knows of a transaction. The first to ask looks at what is at the
// end: what this process has written, or hears of, it knows. Where the bounds say what is there nothing is read, or the first
// list of a hub would open as many cursors as this has partitions.
func (h *hub) tailOf(ctx context.Context, number int, bounds eventlog.Bounds) (*tail, error) {
	slot := &h.tails[number]
	if t := slot.tail.Load(); t != nil || bounds.Empty() || slot.ended.Load() {
		return t, nil
	}
	if bounds.FormKnown && !ofTransaction(bounds.Form) {
		slot.ended.Store(true)
		return slot.tail.Load(), nil
	}
	cursor, err := h.open(ctx, number, eventlog.At(bounds.Last()))
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	extents, err := cursor.Extents(ctx, nil, 1)
	if _, damaged := errors.AsType[*eventlog.CorruptError](err); err != nil && !damaged {
		return nil, err
	}
	slot.ended.Store(true)
	for _, e := range extents {
		if ofTransaction(e.Form) {
			h.transacted(number, e.First-eventlog.Sequence(e.Skip))
		}
	}
	return slot.tail.Load(), nil
}

// look finds how far the partition can be read, within its bounds.
func (t *tail) look(ctx context.Context, h *hub, number int, bounds eventlog.Bounds) (reach, error) {
	if k := t.current(bounds); k != nil {
		return *k, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return reach{}, context.Cause(ctx)
	}
	if k := t.current(bounds); k != nil {
		return *k, nil
	}
	k := reach{from: eventlog.Sequence(t.from.Load()), end: bounds.Next, found: time.Now()}
	if err := t.find(ctx, h.opener(number), k.from, bounds); err != nil {
		return reach{}, err
	}
	k.last, k.time, k.stable = t.scan.last, bounds.LastTime, t.scan.next
	if before := t.known.Load(); before != nil && before.last == k.last {
		k.time = before.time
	} else if k.last >= bounds.First && k.last < bounds.Last() {
		k.time = enqueued(ctx, t.scan, k)
	}
	t.known.Store(&k)
	return k, nil
}

// current gives what is known if it still holds.
func (t *tail) current(bounds eventlog.Bounds) *reach {
	if k := t.known.Load(); k != nil && k.end >= bounds.Next && k.from <= eventlog.Sequence(t.from.Load()) {
		return k
	}
	return nil
}

// find goes on with the scan, also where one has ended with an error, such as that of somebody who lost patience. Where
// nothing was scanned, or too late, it begins at from, and looks back until there is an event.
func (t *tail) find(ctx context.Context, open func(context.Context, eventlog.Position) (eventlog.Cursor, error), from eventlog.Sequence, bounds eventlog.Bounds) error {
	begin := min(from, bounds.Next)
	for back := eventlog.Sequence(1); ; back = max(begin-t.scan.from, 1) * stepsBack {
		if t.scan == nil || t.scan.from > from || back > 1 {
			at := max(begin-back, bounds.First)
			t.scan = &scan{fates: newFates(open), open: open, from: at, next: at, last: eventlog.NoSequence}
		}
		if err := t.scan.forward(ctx, bounds); err != nil {
			return err
		}
		if t.scan.last != eventlog.NoSequence || t.scan.from <= bounds.First {
			return nil
		}
	}
}

// forward goes on to the end, or to the first frame that is not decided. Damage counts as events: who reads it hears of it.
func (s *scan) forward(ctx context.Context, bounds eventlog.Bounds) error {
	s.next = max(s.next, bounds.First)
	for {
		more, err := s.step(ctx)
		damage, damaged := errors.AsType[*eventlog.CorruptError](err)
		switch {
		case damaged && damage.Next > s.next:
			s.next, s.last = damage.Next, damage.Next-1
		case damaged:
			s.last = bounds.Last()
			return nil
		case err != nil || !more:
			return err
		}
	}
}

func (s *scan) step(ctx context.Context) (more bool, err error) {
	cursor, err := newCommitted(ctx, s.open, eventlog.At(s.next), func() *Fates { return s.fates })
	if _, beyond := errors.AsType[*eventlog.PositionError](err); beyond {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer cursor.Close()
	extents, err := cursor.Extents(ctx, nil, aheadBytes)
	s.next = max(s.next, cursor.At()) // behind what does not count, also where an error follows
	if err != nil {
		return false, err
	}
	for _, e := range extents {
		s.next, s.last = e.Next(), e.Next()-1
	}
	return len(extents) > 0, nil
}

// enqueued is when the newest event was. Where it cannot be read it is not known better than that of the end.
func enqueued(ctx context.Context, s *scan, k reach) time.Time {
	cursor, err := s.open(ctx, eventlog.At(k.last))
	if err != nil {
		return k.time
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	if err != nil || run.First != k.last {
		return k.time
	}
	return run.Time
}

// tailRest is the least between two looks that nobody waits for.
const tailRest = 100 * time.Millisecond

// lookAgain is for who must not wait: the tail is looked at soon, by Run, unless it just was.
func (f *Frames) lookAgain(t *tail, h *hub, number int) {
	if k := t.known.Load(); k != nil && time.Since(k.found) < tailRest {
		return
	}
	if t.asked.CompareAndSwap(false, true) {
		select {
		case f.tails <- tailLook{t, h, number}:
		default:
			t.asked.Store(false) // there are too many: the next to ask tries again
		}
	}
}

// tailLook is a look that somebody wants.
type tailLook struct {
	tail   *tail
	hub    *hub
	number int
}

// maxTailLooks is how many looks may wait.
const maxTailLooks = 1024

// runTails looks at tails that somebody wants looked at, until ctx ends.
func (f *Frames) runTails(ctx context.Context) {
	for {
		select {
		case l := <-f.tails:
			l.tail.asked.Store(false)
			_, _ = l.tail.look(ctx, l.hub, l.number, l.hub.begins(l.number, l.hub.partitions[l.number].Peek())) // else somebody asks again
		case <-ctx.Done():
			return
		}
	}
}
