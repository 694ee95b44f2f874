package logs

import (
	"context"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// cursor is an eventlog.Cursor: a number, and a reader that fetches what is there.
type cursor struct {
	part *part
	at   eventlog.Sequence
	r    reader
	// events are those of the runs that were given last.
	events []eventlog.Event
	closed bool
}

var _ eventlog.Cursor = (*cursor)(nil)

// Next is eventlog.Cursor's.
func (c *cursor) Next(ctx context.Context) (eventlog.Run, error) {
	for {
		run, err := c.TryNext(ctx)
		if err != nil || run.Len() > 0 {
			return run, err
		}
		if ctx.Err() != nil {
			return eventlog.Run{}, context.Cause(ctx)
		}
		woken := make(chan struct{})
		stop := c.Await(func() { close(woken) })
		select {
		case <-woken:
		case <-ctx.Done():
			stop()
			return eventlog.Run{}, context.Cause(ctx)
		}
	}
}

// TryNext is eventlog.Cursor's.
func (c *cursor) TryNext(ctx context.Context) (run eventlog.Run, err error) {
	c.events = c.events[:0]
	there, err := c.find(ctx, true)
	if err != nil || !there {
		return eventlog.Run{}, err
	}
	return c.take()
}

// TryNextAll is eventlog.Cursor's. What is behind the first run is taken as long as nothing more has
// to be read.
func (c *cursor) TryNextAll(ctx context.Context, to []eventlog.Run, max int) ([]eventlog.Run, error) {
	c.events = c.events[:0]
	for first := true; ; first = false {
		there, err := c.find(ctx, first)
		if err != nil && first {
			return to, err
		}
		if err != nil || !there {
			return to, nil
		}
		if max -= c.r.batches[0].bytes(); max < 0 && !first {
			return to, nil
		}
		run, err := c.take()
		if err != nil {
			if first {
				return to, err
			}
			return to, nil
		}
		to = append(to, run)
	}
}

// Extents is eventlog.Cursor's. Bodies are read for it, and dropped.
func (c *cursor) Extents(ctx context.Context, to []eventlog.Extent, max int) ([]eventlog.Extent, error) {
	look := cursor{part: c.part, at: c.at, r: c.r.clone()}
	for first := true; ; first = false {
		there, err := look.find(ctx, true)
		if err != nil && first {
			return to, err
		}
		if err != nil || !there {
			return to, nil
		}
		b := look.r.batches[0]
		if max -= b.bytes(); max < 0 && !first {
			return to, nil
		}
		to = append(to, b.extent(look.at))
		look.at = b.next()
	}
}

// find has the reader hold the batch at the cursor's place. It is false at the end; and also where
// something would have to be read that may not.
func (c *cursor) find(ctx context.Context, mayRead bool) (bool, error) {
	if c.closed {
		return false, eventlog.ErrClosed
	}
	there, at, err := c.r.find(ctx, c.part, c.at, mayRead)
	if err == nil {
		c.at = at
	}
	return there, err
}

// take gives the batch that was found, from the cursor's place on, and moves past it.
func (c *cursor) take() (eventlog.Run, error) {
	b := &c.r.batches[0]
	run, events, err := b.run(c.at, c.events, c.part.s.e.cfg.Fill)
	if err == errBody {
		err = &eventlog.CorruptError{Where: c.part.where(), First: b.first, Next: b.next(), Reason: err.Error()}
	}
	if err != nil {
		return eventlog.Run{}, err
	}
	c.events, c.at = events, b.next()
	return run, nil
}

// Rest is eventlog.Cursor's.
func (c *cursor) Rest() {
	c.r.rest()
	c.events = nil
}

// Await is eventlog.Cursor's.
func (c *cursor) Await(wake func()) (stop func()) {
	s := c.part.s
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{at: c.at, wake: sync.OnceFunc(wake)}
	c.part.awaitLocked(w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.part.leaveLocked(w)
	}
}

// At is eventlog.Cursor's.
func (c *cursor) At() eventlog.Sequence { return c.at }

// Close is eventlog.Cursor's.
func (c *cursor) Close() error {
	c.closed = true
	c.Rest()
	return nil
}
