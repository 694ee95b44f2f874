package functions

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/panics"
)

// sinkTimeout bounds one try of writing a poison event.
const sinkTimeout = 30 * time.Second

// putAway writes an event's poison event, or drops it where there is no target for them. It
// takes as long as it takes: the checkpoint waits.
//
//	store the intent ─▶ write the poison event ─▶ store that it is away
//
// Whoever finds an intent writes the same poison event again, under the number that stands there,
// so that a hub which knows producers' numbers has it once, however often and wherever somebody
// died in between. One event at a time is put away, as the next number is free only when this one
// is known to be taken.
func (w *worker) putAway(ctx context.Context, leaving <-chan struct{}, u triage.Unit, l PoisonEvent) error {
	if err := acquire(ctx, leaving, w.away); err != nil {
		return err
	}
	defer func() { <-w.away }()
	defer w.fn.waiting.set(w.part.ID(), "")
	if w.writer == nil {
		w.record.change(func(work *triage.Work) { work.Drop(u.Events) })
		w.fn.counts.dropped.Add(1)
		w.fn.traceAway("drop", &l)
		w.fn.putAway.warn(w.fn.log, "an event was dropped: the function has no target for poison events",
			"id", l.ID, "attempts", l.Attempts, keyError, l.Reason)
		return nil
	}
	var intent triage.Intent
	w.record.change(func(work *triage.Work) { intent = work.Intend(u, w.writer.partition(), newProducer()) })
	if err := w.persist(ctx, leaving); err != nil {
		return err
	}
	if err := w.write(ctx, leaving, intent, l); err != nil {
		return err
	}
	w.record.change(func(work *triage.Work) { work.Sent(l.Sequence) })
	if err := w.persist(ctx, leaving); err != nil {
		return err
	}
	w.fn.counts.poisoned.Add(1)
	w.fn.traceAway("put-away", &l)
	w.fn.putAway.warn(w.fn.log, "an event was put away", "id", l.ID, "to", w.fn.target.String(), "attempts", l.Attempts, keyError, l.Reason)
	return nil
}

// mayPutAway asks the circuit for leave to put events away, of which it says how many, the first,
// may be, and for which term.
func (w *worker) mayPutAway(ctx context.Context, leaving <-chan struct{}, called int64, s []breaker.Sample) (allowed int, term int64, err error) {
	for failures := 1; ; failures++ {
		allowed, term, err = w.fn.circuit.MayPutAway(ctx, called, len(s), s...)
		if err == nil {
			return allowed, term, nil
		}
		if ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		w.report("look at the circuit before an event is put away", err)
		if err := sleep(ctx, leaving, backoff(failures)); err != nil {
			return 0, 0, err
		}
	}
}

// newProducer is a number that nobody else has.
func newProducer() int64 { return rand.Int64N(1<<62) + 1 }

// write writes the poison event until it is durable.
func (w *worker) write(ctx context.Context, leaving <-chan struct{}, intent triage.Intent, l PoisonEvent) error {
	for failures := 1; ; failures++ {
		err := w.tryWrite(ctx, intent, l)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, hub.ErrOutOfOrder) || errors.Is(err, hub.ErrProducerFenced) {
			// The poison hub was made anew, or has not heard of us for so long that it has
			// forgotten our numbers.
			w.record.change(func(work *triage.Work) { intent = work.Renumber(l.Sequence, newProducer()) })
			if err := w.persist(ctx, leaving); err != nil {
				return err
			}
			if failures == 1 {
				continue
			}
		}
		wanting := w.fn.target.String() + " takes no poison: " + reason(err)
		if plain, ok := errors.AsType[*plainError](err); ok {
			wanting = plain.text
		}
		w.fn.waiting.set(w.part.ID(), wanting)
		w.fn.reportStep(StepPutAway, w.part.ID(), "put event "+l.ID+" away in "+w.fn.target.String()+", for which the partition waits", err)
		if err := sleep(ctx, leaving, backoff(failures)); err != nil {
			return err
		}
	}
}

func (w *worker) tryWrite(ctx context.Context, intent triage.Intent, l PoisonEvent) error {
	ctx, cancel := context.WithTimeout(ctx, sinkTimeout)
	defer cancel()
	return panics.Call(func() error { return w.writer.put(ctx, intent, l) })
}
