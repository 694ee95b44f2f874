package broker

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// committed is a cursor that gives what counts: frames of transactions once these are committed, and neither control
// frames nor what was aborted. Where a transaction is not decided it is as at the end, until it is. It gives frames of
// transactions as what they would be without.
type committed struct {
	open func(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error)
	// fates are made when the first frame of a transaction comes.
	fates *Fates
	make  func() *Fates
	// met hears where something of a transaction is; nil: nobody does.
	met func(at eventlog.Sequence)
	// cursor is nil where it is to be opened again; held says that it has gone past a frame that was not given, and is
	// to be judged again.
	cursor eventlog.Cursor
	held   bool
	frame  eventlog.Extent
	closed bool
}

func newCommitted(ctx context.Context, open func(context.Context, eventlog.Position) (eventlog.Cursor, error), at eventlog.Position, make func() *Fates) (*committed, error) {
	cursor, err := open(ctx, at)
	if err != nil {
		return nil, err
	}
	return &committed{open: open, make: make, cursor: cursor}, nil
}

func (c *committed) Next(ctx context.Context) (eventlog.Run, error) {
	defer c.restFates()
	for {
		if err := c.resume(ctx); err != nil {
			return eventlog.Run{}, err
		}
		if c.held {
			c.restFates() // it may take long
			if err := c.wait(ctx); err != nil {
				return eventlog.Run{}, err
			}
			continue
		}
		run, err := c.cursor.Next(ctx)
		if err != nil {
			return run, err
		}
		if given, err := c.admit(ctx, &run); given || err != nil {
			return run, err
		}
	}
}

func (c *committed) TryNext(ctx context.Context) (eventlog.Run, error) {
	defer c.restFates()
	for {
		if err := c.resume(ctx); err != nil || c.held {
			return eventlog.Run{}, err
		}
		run, err := c.cursor.TryNext(ctx)
		if err != nil || run.Len() == 0 {
			return run, err
		}
		if given, err := c.admit(ctx, &run); given || err != nil {
			return run, err
		}
	}
}

func (c *committed) TryNextAll(ctx context.Context, to []eventlog.Run, max int) ([]eventlog.Run, error) {
	defer c.restFates()
	for before := len(to); ; {
		if err := c.resume(ctx); err != nil || c.held {
			return to, err
		}
		all, err := c.cursor.TryNextAll(ctx, to, max)
		if err != nil || len(all) == before {
			return all, err
		}
		to = all[:before]
		for i := before; i < len(all) && !c.held; i++ {
			given, failed := c.admit(ctx, &all[i])
			if given {
				to = append(to, all[i])
			}
			err = failed
		}
		if len(to) > before { // an error behind it is left to the next call
			return to, nil
		}
		if err != nil {
			return to, err
		}
	}
}

// admit says whether a run is given. One that is not decided, or cannot be, is held.
func (c *committed) admit(ctx context.Context, run *eventlog.Run) (given bool, err error) {
	switch run.Form {
	case eventlog.FormControl:
		c.meet(run.First)
		return false, nil
	case eventlog.FormTransaction:
		c.meet(run.First - eventlog.Sequence(run.Skip))
	default:
		return true, nil
	}
	e := eventlog.Extent{First: run.First, Form: run.Form, Count: run.Count, Skip: run.Skip, Producer: run.Producer}
	fate, err := c.judge(ctx, e)
	if err != nil || fate == Undecided {
		c.held, c.frame = true, e
		*run = eventlog.Run{}
		return false, err
	}
	run.Form = eventlog.FormKafka
	return fate == Counts, nil
}

func (c *committed) meet(at eventlog.Sequence) {
	if c.met != nil {
		c.met(at)
	}
}

func (c *committed) judge(ctx context.Context, e eventlog.Extent) (Fate, error) {
	if c.fates == nil {
		c.fates = c.make()
	}
	c.fates.Pass(e.First - eventlog.Sequence(e.Skip))
	return c.fates.Judge(ctx, e)
}

// resume goes on at a frame that was held, once it is decided.
func (c *committed) resume(ctx context.Context) error {
	if c.closed {
		return eventlog.ErrClosed
	}
	if !c.held {
		return nil
	}
	c.leave()
	fate, err := c.judge(ctx, c.frame)
	if err != nil {
		return err
	}
	cursor, err := c.open(ctx, eventlog.At(c.frame.First))
	if _, beyond := errors.AsType[*eventlog.PositionError](err); beyond && fate == Undecided {
		return nil
	}
	if err != nil {
		return err
	}
	if fate == Undecided && cursor.At() <= c.frame.First {
		return cursor.Close()
	}
	// Where it was removed meanwhile, what decided it may be gone as well: there is nothing to wait for.
	c.cursor, c.held = cursor, false
	return nil
}

func (c *committed) leave() {
	if c.cursor != nil {
		_ = c.cursor.Close() // it has nothing to lose
		c.cursor = nil
	}
}

// wait returns when there may be something to give.
func (c *committed) wait(ctx context.Context) error {
	woken := make(chan struct{})
	stop := c.Await(func() { close(woken) })
	defer stop()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *committed) Extents(ctx context.Context, to []eventlog.Extent, max int) ([]eventlog.Extent, error) {
	defer c.restFates()
	for before := len(to); ; {
		if err := c.resume(ctx); err != nil || c.held {
			return to, err
		}
		all, err := c.cursor.Extents(ctx, to, max)
		if err != nil || len(all) == before {
			return all, err
		}
		to = all[:before]
		for _, e := range all[before:] {
			if e.Form == eventlog.FormControl || e.Form == eventlog.FormTransaction {
				c.meet(e.First - eventlog.Sequence(e.Skip))
			}
			fate, err := c.judge(ctx, e)
			if err != nil || fate == Undecided {
				if len(to) > before { // it is left to the next call
					return to, nil
				}
				c.held, c.frame = true, e
				return to, err
			}
			if fate == Counts && e.Form != eventlog.FormControl {
				if e.Form == eventlog.FormTransaction {
					e.Form = eventlog.FormKafka
				}
				to = append(to, e)
			}
		}
		if len(to) > before {
			return to, nil
		}
		// Nothing of it is ever given.
		next, err := c.open(ctx, eventlog.At(all[len(all)-1].Next()))
		if err != nil {
			return to, err
		}
		c.leave()
		c.cursor = next
	}
}

// restFates gives back what is remembered of transactions, beyond a little.
func (c *committed) restFates() {
	if c.fates != nil {
		c.fates.Rest()
	}
}

func (c *committed) Rest() {
	if c.cursor != nil {
		c.cursor.Rest()
	}
}

// awaitTimeout bounds how long it takes to begin to wait.
const awaitTimeout = 5 * time.Second

// Await waits, where a frame is not decided, behind what was looked at for what decides it.
func (c *committed) Await(wake func()) (stop func()) {
	if !c.held {
		return c.cursor.Await(wake)
	}
	ctx, cancel := context.WithTimeout(context.Background(), awaitTimeout)
	defer cancel()
	cursor, err := c.open(ctx, eventlog.At(c.fates.End()))
	if err != nil {
		wake() // who reads on hears of it
		return func() {}
	}
	defer cursor.Close() // it wakes all the same
	return cursor.Await(wake)
}

func (c *committed) At() eventlog.Sequence {
	if c.held {
		return c.frame.First
	}
	return c.cursor.At()
}

func (c *committed) Close() error {
	c.closed = true
	if c.cursor == nil {
		return nil
	}
	return c.cursor.Close()
}
