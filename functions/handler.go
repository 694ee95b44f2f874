package functions

import (
	"context"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/panics"
)

// Handler is called with a batch. nil means that all of it is done. An error is the verdict on it,
// however it is wrapped: RetryAfter, Poison, Unavailable, Skip, or *Results for single events;
// anything else, and a panic, follows the binding's Retry.
//
// ctx ends at the binding's Timeout (its cause is ErrTimeout), and what is returned after that is a
// failed attempt. It also ends when the partition is taken away: by a stop, a handoff to another
// instance or a lost lease. What is returned after that counts for nothing: the events come again,
// here or elsewhere, with the attempts they had. So handlers are to be idempotent; Batch.ID is the
// key for that.
type Handler func(ctx context.Context, b *Batch) error

// Batch is what a function is called with: events of one partition, in order.
type Batch struct {
	// Events are as they were read, at least one. The slice is used again when the call has
	// returned: copy it to keep it longer. The events themselves may be kept.
	Events []event.Event
	// Attempt is 1 the first time these events are tried. It survives restarts and counts calls in
	// which an instance died, too.
	Attempt   int
	Function  string
	Hub       string
	Group     string
	Partition string
	// Epoch is the lease's: a fencing token for systems of your own.
	Epoch int64
}

// ID is the stable id of an event of the batch, the same at every attempt and at every instance:
// function/hub/partition/sequence.
func (b *Batch) ID(ev event.Event) string {
	return poison.ID(b.Function, b.Hub, b.Partition, ev.Sequence)
}

// Each makes a Handler of a function for single events, which are handled one after the other. When
// one fails, those before it are done and those behind it wait, untouched. It may return
// RetryAfter, Poison, Unavailable and Skip. The binding's Timeout is for each event, and when the
// partition is to be given up, or the circuit is not closed, no further event is begun: nothing is
// done twice.
//
// Attempt(ctx) gives the attempt and ID(ctx) the stable id.
func Each(handle func(ctx context.Context, ev event.Event) error) Handler {
	return func(ctx context.Context, b *Batch) error {
		c, ours := ctx.Value(callKey{}).(*call)
		if !ours || c.batch != b { // somebody's test, or a batch that a middleware has made
			c = &call{Context: ctx, batch: b}
			ctx = c
		}
		return c.each(ctx, handle)
	}
}

// each calls handle for one event after the other. ctx may be a middleware's, below the call's own.
func (c *call) each(ctx context.Context, handle func(context.Context, event.Event) error) error {
	events := c.batch.Events
	c.finished, c.partial = 0, nil // a middleware may try more than once
	var r Results
	for i := range events {
		if !c.begin(i) {
			r.rest(i, len(events))
			break
		}
		err := panics.Call(func() error { return handle(ctx, events[i]) })
		if c.Err() != nil {
			r.fail(i, late(err))
			r.rest(i+1, len(events))
			break
		}
		if err != nil {
			r.fail(i, err)
			if judgeOne(err).Verdict != triage.Skip {
				r.rest(i+1, len(events))
				break
			}
		}
		c.finished = i + 1
	}
	if c.Err() != nil { // the host cannot trust what a handler says then, but it can trust this
		c.partial = &r
	}
	return r.verdict()
}

func (r *Results) fail(target int, err error) {
	if r.Failed == nil {
		r.Failed = map[int]error{}
	}
	r.Failed[target] = err
}

// rest notes that the events from this place on are untouched.
func (r *Results) rest(from, to int) {
	for i := from; i < to; i++ {
		r.Untouched = append(r.Untouched, i)
	}
}

func (r *Results) verdict() error {
	if r.Failed == nil && r.Untouched == nil {
		return nil
	}
	return r
}

// Attempt is the attempt of the call that ctx is of, from 1; 0 outside of one.
func Attempt(ctx context.Context) int {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.batch.Attempt
	}
	return 0
}

// ID is the stable id of the event that Each handles, function/hub/partition/sequence; empty
// outside of Each. It is that of the event in progress: keep the id rather than ctx.
func ID(ctx context.Context) string {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return ""
	}
	target := int(c.target.Load()) - 1
	if target < 0 || target >= len(c.batch.Events) {
		return ""
	}
	return c.batch.ID(c.batch.Events[target])
}

// Middleware wraps a handler.
type Middleware func(Handler) Handler

// Chain wraps a handler so that the first middleware is the outermost.
func Chain(h Handler, m ...Middleware) Handler {
	for i := len(m) - 1; i >= 0; i-- {
		h = m[i](h)
	}
	return h
}
