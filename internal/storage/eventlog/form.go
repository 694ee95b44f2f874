package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Form says what the events of a batch are kept as. Engines keep every form, and look into none.
// Tests have numbers from 128 on.
type Form uint8

const (
	// FormEvents: single events, each its AMQP sections, in Batch.Events.
	FormEvents Form = iota
	// FormKafka: a Kafka record batch, as its producer made it, in Batch.Raw.
	FormKafka
	// FormControl: the word that ends a transaction of its producer in the partition. It takes one
	// number, which readers of events pass over. Producer.First is Commit or Abort.
	FormControl
	// FormTransaction: as FormKafka, in a transaction of its producer. Whether its events count, the
	// producer's next frame of FormControl says.
	FormTransaction
)

// What Producer.First of a frame of FormControl is.
const (
	Abort  int32 = 0
	Commit int32 = 1
)

func (f Form) String() string {
	switch f {
	case FormEvents:
		return "events"
	case FormKafka:
		return "kafka"
	case FormControl:
		return "control"
	case FormTransaction:
		return "transaction"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// ErrForm: the events are stored in a form that this reader does not know, or a batch is of two
// forms at once.
var ErrForm = errors.New("events are in a form that is not known here")

// Len is how many events the batch has.
func (b Batch) Len() int {
	if b.Form == FormEvents {
		return len(b.Events)
	}
	return b.Count
}

// Check refuses what no engine stores: ErrEmptyBatch, ErrTooLarge, and ErrForm for a batch that has
// both events and raw bytes. Of others it gives what Bytes does.
func (b Batch) Check() (size int, err error) {
	raw := len(b.Raw) > 0 || b.Count != 0 || b.Place != nil
	switch {
	case b.Form == FormEvents && raw || b.Form != FormEvents && len(b.Events) > 0:
		return 0, fmt.Errorf("%w: %s, and also what another form has", ErrForm, b.Form)
	case b.Len() <= 0 || b.Form != FormEvents && len(b.Raw) == 0:
		return 0, ErrEmptyBatch
	}
	for i := range b.Events {
		if len(b.Events[i].Key) > MaxKeyBytes {
			return 0, ErrTooLarge
		}
	}
	if size = b.Bytes(); size > MaxBatchBytes || b.Len() > math.MaxInt32 {
		return 0, ErrTooLarge
	}
	return size, nil
}

// Len is how many events the run gives: from First on.
func (r Run) Len() int {
	if r.Form == FormEvents {
		return len(r.Events)
	}
	return r.Count - r.Skip
}

// Extent is what headers tell of a run.
type Extent struct {
	First Sequence
	Form  Form
	// Count and Skip are a frame's. Of single events Skip is how many of the batch's Count come
	// before First.
	Count, Skip int
	// Bytes is what the whole batch measures, by Batch.Bytes: of a frame, the length of Run.Raw.
	Bytes int
	// Producer is as Run's.
	Producer Producer
}

// Next is the number that follows the run.
func (e Extent) Next() Sequence { return e.First + Sequence(e.Count-e.Skip) }

// EventsOnly makes a cursor for readers of single events out of one that gives every form. Where
// another form comes it answers ErrForm and stays there: to such a reader a run of raw bytes would
// look like the end. Every reader of events gets its cursor by it, or by Translated, as those of hubs do
// at the broker.
func EventsOnly(c Cursor) Cursor { return &eventsOnly{Cursor: c} }

type eventsOnly struct {
	Cursor
	// refused is set where the inner cursor has moved past what was refused, which begins at at.
	refused error
	at      Sequence
}

func (c *eventsOnly) Next(ctx context.Context) (Run, error) { return c.admit(ctx, c.Cursor.Next) }

func (c *eventsOnly) TryNext(ctx context.Context) (Run, error) { return c.admit(ctx, c.Cursor.TryNext) }

func (c *eventsOnly) admit(ctx context.Context, next func(context.Context) (Run, error)) (Run, error) {
	if c.refused != nil {
		return Run{}, c.refused
	}
	run, err := next(ctx)
	if err == nil && run.Form != FormEvents {
		return Run{}, c.refuse(run)
	}
	return run, err
}

func (c *eventsOnly) TryNextAll(ctx context.Context, to []Run, max int) ([]Run, error) {
	if c.refused != nil {
		return to, c.refused
	}
	before := len(to)
	to, err := c.Cursor.TryNextAll(ctx, to, max)
	for i := before; i < len(to); i++ {
		if to[i].Form == FormEvents {
			continue
		}
		if err := c.refuse(to[i]); i == before {
			return to[:i], err
		}
		return to[:i], nil
	}
	return to, err
}

func (c *eventsOnly) Extents(ctx context.Context, to []Extent, max int) ([]Extent, error) {
	if c.refused != nil {
		return to, c.refused
	}
	return c.Cursor.Extents(ctx, to, max)
}

func (c *eventsOnly) refuse(run Run) error {
	c.at = run.First
	c.refused = fmt.Errorf("%w: %d to %d are %s", ErrForm, run.First, run.Next()-1, run.Form)
	return c.refused
}

func (c *eventsOnly) Await(wake func()) (stop func()) {
	if c.refused != nil {
		wake()
		return func() {}
	}
	return c.Cursor.Await(wake)
}

func (c *eventsOnly) At() Sequence {
	if c.refused != nil {
		return c.at
	}
	return c.Cursor.At()
}
