package eventlog

import (
	"context"
	"errors"
)

// Translate gives a frame's events, from frame.First on, as a log keeps single ones, appended to to. They
// measure at most maxBytes together, as Batch.Bytes does, but there is at least one. Their bytes are behind
// those in buf. It may be called by many goroutines at once, and waits for nothing.
type Translate func(to []Event, buf []byte, frame Run, maxBytes int) ([]Event, []byte, error)

// Translators translate frames, by their form.
type Translators map[Form]Translate

// Translated makes a cursor for readers of single events out of one that gives every form: frames come as
// their events. Where nobody translates a form it is as EventsOnly; where a frame cannot be translated it
// answers a *CorruptError.
func Translated(c Cursor, by Translators) Cursor {
	if len(by) > 0 {
		c = &translated{Cursor: c, by: by}
	}
	return EventsOnly(c)
}

// partBytes is what a run measures at most that is a part of a frame, unless a single event measures more.
// Packed frames may hold many times what they measure themselves; a reader holds the frame, and this.
const partBytes = 1 << 20

type translated struct {
	Cursor
	by Translators
	// frame is what is left to be given of one; without events where there is none. It is valid as long as
	// the inner cursor is not called.
	frame Run
	// events and buf are those of the run that was given last.
	events []Event
	buf    []byte
}

func (c *translated) Next(ctx context.Context) (Run, error) { return c.give(ctx, c.Cursor.Next) }

func (c *translated) TryNext(ctx context.Context) (Run, error) { return c.give(ctx, c.Cursor.TryNext) }

func (c *translated) give(ctx context.Context, next func(context.Context) (Run, error)) (Run, error) {
	if c.frame.Len() == 0 {
		run, err := next(ctx)
		if err != nil || c.by[run.Form] == nil {
			return run, err
		}
		c.frame = run
	}
	return c.part()
}

var errTranslated = errors.New("there are fewer or more events in it than were stored")

// part gives as much of the frame as a run may have. After an error the frame stays, and so does the error.
func (c *translated) part() (Run, error) {
	f := &c.frame
	events, buf, err := c.by[f.Form](c.events[:0], c.buf[:0], *f, partBytes)
	n := len(events)
	if err == nil && (n == 0 || n > f.Len()) {
		err = errTranslated
	}
	if err != nil {
		return Run{}, &CorruptError{Where: "frame of form " + f.Form.String(), First: f.First - Sequence(f.Skip), Next: f.Next(), Reason: err.Error()}
	}
	c.events, c.buf = events, buf
	run := Run{First: f.First, Time: f.Time, Producer: f.Producer, Events: events}
	f.First += Sequence(n)
	f.Skip += n
	if f.Producer.Set {
		f.Producer.First += int32(n)
	}
	if f.Len() == 0 {
		*f = Run{}
	}
	return run, nil
}

// TryNextAll gives one run: what is behind a frame must not be read before the frame was given.
func (c *translated) TryNextAll(ctx context.Context, to []Run, _ int) ([]Run, error) {
	run, err := c.TryNext(ctx)
	if err != nil || run.Len() == 0 {
		return to, err
	}
	return append(to, run), nil
}

// Extents gives what is left of a frame, or what comes next.
func (c *translated) Extents(ctx context.Context, to []Extent, max int) ([]Extent, error) {
	if f := &c.frame; f.Len() > 0 {
		return append(to, Extent{First: f.First, Form: f.Form, Count: f.Count, Skip: f.Skip, Bytes: len(f.Raw), Producer: f.Producer}), nil
	}
	return c.Cursor.Extents(ctx, to, max)
}

// Rest keeps a frame that was not given whole.
func (c *translated) Rest() {
	c.events, c.buf = nil, nil
	if c.frame.Len() == 0 {
		c.Cursor.Rest()
	}
}

func (c *translated) Await(wake func()) (stop func()) {
	if c.frame.Len() > 0 {
		wake()
		return func() {}
	}
	return c.Cursor.Await(wake)
}

func (c *translated) At() Sequence {
	if c.frame.Len() > 0 {
		return c.frame.First
	}
	return c.Cursor.At()
}

func (c *translated) Close() error {
	c.frame, c.events, c.buf = Run{}, nil, nil
	return c.Cursor.Close()
}
