package disk

import (
	"context"
	"errors"
	"io"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Where batches are smaller than smallBatch, one read of skimBytes gives the headers of several.
// Larger ones are worth a read of their own, of the header alone.
const (
	smallBatch = 16 << 10
	skimBytes  = 64 << 10
)

// TryNextAll gives several runs; see eventlog.Cursor.
func (c *cursor) TryNextAll(ctx context.Context, to []eventlog.Run, max int) ([]eventlog.Run, error) {
	if !c.closed {
		if ok, err := c.position(); err != nil || !ok {
			return to, err
		}
		c.scan.Ahead(max)
	}
	run, err := c.TryNext(ctx)
	if err != nil || run.Len() == 0 {
		return to, err
	}
	to = append(to, run)
	left := max - measure(run)
	for c.file != nil { // all of it is in memory
		body, ok := c.scan.Held()
		if left -= body; !ok || left < 0 {
			break
		}
		at := c.scan.Offset()
		batch, err := c.scan.Next()
		if err == nil {
			run, err = c.decode(batch)
		}
		if err != nil || run.Len() == 0 {
			c.scan.MoveTo(at) // the next call says what is wrong
			break
		}
		c.nextSeq = run.Next()
		to = append(to, run)
	}
	return to, nil
}

// measure is what a run takes of a limit in bytes: what is left of its batch.
func measure(run eventlog.Run) int {
	return eventlog.Batch{Events: run.Events, Raw: run.Raw}.Bytes()
}

// Extents skims headers; see eventlog.Cursor.
func (c *cursor) Extents(ctx context.Context, to []eventlog.Extent, max int) ([]eventlog.Extent, error) {
	if c.closed {
		return to, eventlog.ErrClosed
	}
	c.refresh()
	s := skimming{to: to, left: max}
	err := s.segment(c)
	if err != nil || len(s.to) == len(to) {
		return s.to, err
	}
	// What comes behind the segment is looked at without leaving it.
	for before := 0; s.left > 0 && len(s.to) > before && c.p.has(s.next()); {
		before = len(s.to)
		s.beyond(&cursor{p: c.p, nextSeq: s.next()})
	}
	return s.to, nil
}

// refresh lets the cursor see what its segment holds by now.
func (c *cursor) refresh() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.file != nil {
		c.scan.SetLimit(c.file.tail.Offset)
	}
}

// has tells whether there is an event of that number.
func (p *partition) has(seq eventlog.Sequence) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone == nil && seq < p.visible.next
}

// skimming gathers extents.
type skimming struct {
	to    []eventlog.Extent
	left  int // of the bytes that are wanted; negative: no more are
	found bool
}

// next is the number behind what was gathered; there is something.
func (s *skimming) next() eventlog.Sequence { return s.to[len(s.to)-1].Next() }

// segment gathers from the cursor's position on, to the end of its segment. The cursor stays where it
// is.
func (s *skimming) segment(c *cursor) error {
	for {
		if ok, err := c.position(); err != nil || !ok {
			return err
		}
		at, err := s.skim(c)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, io.EOF) && at < c.scan.Limit():
			continue // all of it came before the position
		}
		if err := c.passDamage(at, err); err != nil {
			return err
		}
	}
}

// beyond is segment for a cursor that only looks. What is wrong there, who comes there hears.
func (s *skimming) beyond(c *cursor) {
	defer c.leave()
	if ok, err := c.position(); ok && err == nil {
		_, _ = s.skim(c)
	}
}

// skim gathers from where the cursor's scanner stands, and puts it back to the batch with the
// cursor's position. An error says that there was none, and at which offset skimming began or failed.
func (s *skimming) skim(c *cursor) (at int64, err error) {
	next, ahead := c.nextSeq, 0
	found, begun := int64(-1), c.scan.Offset()
	for s.left >= 0 {
		at = c.scan.Offset()
		info, body, failed := c.scan.Skim(ahead)
		skip := next - eventlog.Sequence(info.First)
		if failed == nil && skip < 0 {
			failed = segment.ErrInvalid
		}
		if failed != nil {
			err = failed
			break
		}
		if ahead = 0; body < smallBatch {
			ahead = skimBytes
		}
		if skip >= eventlog.Sequence(info.Count) {
			continue // the index led to a batch before the position
		}
		if found < 0 {
			found = at
		}
		e := eventlog.Extent{First: next, Form: eventlog.Form(info.Form), Count: info.Count, Skip: int(skip), Bytes: body}
		e.Producer = producerOf(info, e.Skip)
		if !s.take(e) {
			break
		}
		next = s.next()
	}
	if found >= 0 {
		c.scan.MoveTo(found)
		return found, nil
	}
	if errors.Is(err, io.EOF) {
		at = begun
	}
	return at, err
}

// take adds an extent, unless it is more than is wanted.
func (s *skimming) take(e eventlog.Extent) bool {
	s.left -= e.Bytes
	if s.found && s.left < 0 {
		return false
	}
	s.found = true
	s.to = append(s.to, e)
	return true
}

// Rest gives the memory back; see eventlog.Cursor.
func (c *cursor) Rest() { c.rest() }
