package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// chunk is memory that a cursor reads into, made when first needed. A cursor that waits at the end
// holds none.
type chunk struct{ buf []byte }

const chunkBytes = 256 << 10

// maxKeptEvents is how many a cursor at rest has room for.
const maxKeptEvents = 1024

// cursor implements eventlog.Cursor.
type cursor struct {
	p       *partition
	nextSeq eventlog.Sequence
	// file is the segment being read, acquired; nil before the first read and after
	// errors. The limit of scan is what may be read of it.
	file   *file
	scan   segment.Scanner
	chunk  *chunk
	events []eventlog.Event
	closed bool
}

var _ eventlog.Cursor = (*cursor)(nil)

// Cursor opens a reader; see eventlog.Partition.
func (p *partition) Cursor(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
	p.mu.Lock()
	if err := p.lookLocked(); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	first, next := p.firstLocked(), p.visible.next
	p.mu.Unlock()
	nextSeq := first
	if at.IsLatest() {
		nextSeq = next
	}
	if seq, ok := at.Sequence(); ok {
		if seq > next {
			return nil, &eventlog.PositionError{Asked: seq, Last: next - 1}
		}
		nextSeq = max(seq, first)
	}
	search := p.searchOf(at)
	for search != nil {
		var err error
		if nextSeq, err = search(); err == nil {
			break
		} else if !errors.Is(err, errDropped) { // else it is looked for again, in what is there now
			return nil, err
		}
	}
	return &cursor{p: p, nextSeq: nextSeq}, nil
}

// Next waits for events; see eventlog.Cursor.
func (c *cursor) Next(ctx context.Context) (eventlog.Run, error) {
	for {
		run, err := c.TryNext(ctx)
		if err != nil || run.Len() > 0 {
			return run, err
		}
		p := c.p
		p.mu.Lock()
		if p.gone != nil || p.visible.next > c.nextSeq {
			p.mu.Unlock()
			continue
		}
		if p.wake == nil {
			p.wake = make(chan struct{})
		}
		wake := p.wake
		p.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return eventlog.Run{}, context.Cause(ctx)
		}
	}
}

// Await calls for whoever waits; see eventlog.Cursor.
func (c *cursor) Await(wake func()) (stop func()) {
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil || p.visible.next > c.nextSeq {
		wake()
		return func() {}
	}
	if p.awaiting == nil {
		p.awaiting = map[*waiter]struct{}{}
	}
	w := &waiter{wake}
	p.awaiting[w] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.awaiting, w)
	}
}

// TryNext gives what there is; see eventlog.Cursor.
func (c *cursor) TryNext(ctx context.Context) (eventlog.Run, error) {
	if c.closed {
		return eventlog.Run{}, eventlog.ErrClosed
	}
	c.events = c.events[:0]
	for {
		if ok, err := c.position(); err != nil || !ok {
			return eventlog.Run{}, err
		}
		at := c.scan.Offset()
		batch, err := c.scan.Next()
		var run eventlog.Run
		if err == nil {
			run, err = c.decode(batch)
		}
		if err != nil {
			if err := c.passDamage(at, err); err != nil {
				return eventlog.Run{}, err
			}
			continue
		}
		if run.Len() > 0 {
			c.nextSeq = run.Next()
			return run, nil
		}
	}
}

// position makes the scanner stand before something readable, going on to the next
// segment if need be. False means that the end is reached.
func (c *cursor) position() (bool, error) {
	if c.file != nil && !c.scan.AtEnd() && !c.p.over.Load() {
		c.borrow() // it may have rested
		return true, nil
	}
	c.p.mu.Lock()
	gone, visible := c.p.gone, c.p.visible
	inActive := c.file != nil && c.file == c.p.active
	c.p.mu.Unlock()
	switch {
	case gone != nil:
		c.leave()
		return false, gone
	case c.nextSeq >= visible.next:
		c.rest()
		return false, nil
	case inActive:
		c.scan.SetLimit(visible.offset)
		c.borrow()
		return true, nil
	}
	c.leave()
	for {
		ok, err := c.enter()
		if !errors.Is(err, errDropped) {
			return ok, err
		}
	}
}

// enter goes to the segment that holds the cursor's position, near it. False means that there is
// nothing at the position or behind it: what was there a moment ago may have been removed
// meanwhile.
func (c *cursor) enter() (bool, error) {
	p := c.p
	p.mu.Lock()
	if p.gone != nil {
		p.mu.Unlock()
		return false, p.gone
	}
	c.nextSeq = max(c.nextSeq, p.firstLocked())
	if c.nextSeq >= p.visible.next {
		p.mu.Unlock()
		return false, nil
	}
	f := p.fileOfLocked(c.nextSeq)
	var offset, limit int64
	active := f == p.active
	if active {
		offset, limit = f.index.Sequence(int64(c.nextSeq)), p.visible.offset
	}
	p.mu.Unlock()
	if err := f.acquire(); err != nil {
		return false, err
	}
	if !active {
		if int64(c.nextSeq) >= f.tail.Next {
			f.release()
			return false, f.corrupt(c.nextSeq, f.stop, segment.ErrInvalid)
		}
		offset, limit = f.lookup().Sequence(int64(c.nextSeq)), f.tail.Offset
	}
	c.file = f
	c.scan.Reset(f, f.head.Salt, offset, limit, nil)
	c.borrow()
	return true, nil
}

// fileOfLocked finds the segment that holds a number: the last one whose base is not past it. There
// is at least one segment.
func (s *segments) fileOfLocked(nextSeq eventlog.Sequence) *file {
	i := sort.Search(len(s.files), func(i int) bool { return s.files[i].base > nextSeq })
	return s.files[max(i-1, 0)]
}

// decode gives the events of a batch from the cursor's position on.
func (c *cursor) decode(b segment.Batch) (eventlog.Run, error) {
	skip := c.nextSeq - eventlog.Sequence(b.First)
	if skip >= eventlog.Sequence(b.Count) {
		return eventlog.Run{}, nil // the index led to a batch before the position
	}
	if skip < 0 {
		return eventlog.Run{}, segment.ErrInvalid
	}
	run := eventlog.Run{First: c.nextSeq, Time: time.UnixMilli(b.Time).UTC()}
	if b.Form == 0 {
		before := len(c.events)
		events, err := decodeEvents(c.events, b.Body, b.Count)
		if err != nil {
			return eventlog.Run{}, err
		}
		c.events = events
		run.Events = events[before+int(skip):]
	} else {
		run.Form, run.Raw, run.Count, run.Skip = eventlog.Form(b.Form), b.Body[:len(b.Body):len(b.Body)], b.Count, int(skip)
		run.MaxTime = time.UnixMilli(b.MaxTime).UTC()
	}
	run.Producer = producerOf(b.Info, int(skip))
	return run, nil
}

// producerOf is the producer of what comes behind so many events of a batch.
func producerOf(b segment.Info, skip int) eventlog.Producer {
	if !b.HasProducer {
		return eventlog.Producer{}
	}
	return eventlog.Producer{ID: b.ProducerID, Epoch: b.ProducerEpoch, First: b.ProducerFirst + int32(skip), Set: true}
}

// passDamage deals with bytes that are no batch. Damage before the cursor's position is
// passed by; damage at it is an error that says where one could go on. A segment that was removed,
// and closed since, is left for those that are there.
func (c *cursor) passDamage(offset int64, reason error) error {
	f := c.file
	if errors.Is(reason, errDropped) {
		c.leave()
		return nil
	}
	if !errors.Is(reason, segment.ErrInvalid) && !errors.Is(reason, errBody) && !errors.Is(reason, io.EOF) {
		c.leave()
		return fmt.Errorf("read %s: %w", f.name(), reason)
	}
	c.p.mu.Lock()
	next := f.stop
	if f == c.p.active {
		next = c.p.visible.next
	}
	c.p.mu.Unlock()
	batch, at, err := segment.Resync(f, f.head.Salt, offset+1, c.scan.Limit())
	if errors.Is(err, errDropped) {
		c.leave()
		return nil
	}
	if err == nil {
		next = eventlog.Sequence(batch.First)
		if next <= c.nextSeq {
			c.scan.MoveTo(at)
			return nil
		}
	}
	c.leave()
	c.p.e.metrics.corruptions.Inc()
	if errors.Is(reason, io.EOF) {
		reason = segment.ErrInvalid // there should be more than there is
	}
	return &eventlog.CorruptError{
		Where: fmt.Sprintf("%s at offset %d", f.name(), offset),
		First: c.nextSeq, Next: max(next, eventlog.NoSequence), Reason: reason.Error(),
	}
}

// At is the number of the next event.
func (c *cursor) At() eventlog.Sequence { return c.nextSeq }

// Close frees the cursor.
func (c *cursor) Close() error {
	c.closed = true
	c.leave()
	return nil
}

// borrow gets memory to read into.
func (c *cursor) borrow() {
	if c.chunk == nil {
		c.chunk = c.p.e.chunks.Get().(*chunk)
		if c.chunk.buf == nil {
			c.chunk.buf = make([]byte, 0, chunkBytes)
		}
		c.scan.Adopt(c.chunk.buf)
	}
}

// rest gives the memory back, for as long as there is nothing to read.
func (c *cursor) rest() {
	if c.chunk != nil {
		// The scanner may have taken more memory. What a huge batch needed is not kept.
		if buf := c.scan.Release(); cap(buf) <= 4*chunkBytes {
			c.chunk.buf = buf[:0]
		}
		c.p.e.chunks.Put(c.chunk)
		c.chunk = nil
		if clear(c.events[:cap(c.events)]); cap(c.events) > maxKeptEvents { // they point into the memory
			c.events = nil
		}
	}
}

// leave also lets go of the segment.
func (c *cursor) leave() {
	c.rest()
	if c.file != nil {
		c.file.release()
		c.file = nil
	}
}

// searchTime finds the first event of that time or later, or the end.
func (p *partition) searchTime(ms int64) (eventlog.Sequence, error) {
	p.mu.Lock()
	if p.gone != nil {
		p.mu.Unlock()
		return 0, p.gone
	}
	if p.active == nil {
		p.mu.Unlock()
		return 0, nil // it has never been written
	}
	files, active, visible := slices.Clone(p.files), p.active, p.visible
	offset := active.index.Time(ms)
	p.mu.Unlock()
	var failed error
	i := sort.Search(len(files)-1, func(i int) bool {
		last, err := p.lastOf(files[i])
		if err != nil {
			failed = err
		}
		return err != nil || last.LastTime >= ms
	})
	if failed != nil {
		return 0, failed
	}
	f := files[i]
	err := f.acquire()
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		return f.base, nil // the cursor will say what is wrong with it
	}
	if err != nil {
		return 0, err
	}
	defer f.release()
	if f == active {
		return firstSince(f, ms, offset, visible.offset, visible.next)
	}
	return firstSince(f, ms, f.lookup().Time(ms), f.tail.Offset, f.stop)
}

// firstSince reads a segment from offset to limit for the first batch of that time.
func firstSince(f *file, ms, offset, limit int64, otherwise eventlog.Sequence) (eventlog.Sequence, error) {
	scan := segment.NewScanner(f, f.head.Salt, offset, limit, nil)
	for {
		batch, err := scan.Next()
		switch {
		case err == nil && batch.Time >= ms:
			return eventlog.Sequence(batch.First), nil
		case errors.Is(err, io.EOF):
			return otherwise, nil
		case errors.Is(err, segment.ErrInvalid):
			_, at, err := segment.Resync(f, f.head.Salt, scan.Offset()+1, limit)
			if err != nil {
				return otherwise, nil
			}
			scan.MoveTo(at)
		case err != nil:
			return 0, fmt.Errorf("read %s: %w", f.name(), err)
		}
	}
}
