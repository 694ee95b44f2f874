package functions

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/triage"
)

// putAway is of a guilty event: the failure is counted, and if that or another opens the circuit it
// stays undone.
func (r *round) putAway(p *part) error {
	ev := r.events(p.Events)[0]
	if !p.intended && !p.counted && !r.w.fn.Breaker.Attempts {
		p.counted = true
		open, err := r.w.fn.circuit.Failed(r.ctx, 1, r.sample(p.Unit, p.err))
		if err := r.notify("count the failure", err); err != nil {
			return err
		}
		if open {
			return r.stay()
		}
	}
	w, u := r.w, p.Unit
	l := PoisonEvent{
		ID: poison.ID(w.fn.name, w.fn.Hub, w.part.ID(), ev.Sequence), Function: w.fn.name, Hub: w.fn.Hub, Group: w.fn.Group,
		Partition: w.part.ID(), Sequence: ev.Sequence, Reason: u.Reason, Attempts: u.Tries(), Deaths: u.Deaths,
		At: time.Now(), Instance: w.fn.host.id, Event: ev,
	}
	if p.err != nil { // else it failed elsewhere, and the record has a short form
		l.Reason, l.Stack = reason(p.err), stackOf(p.err)
	}
	away, err := w.putAway(r.ctx, r.b.Leaving(), u, l)
	switch {
	case err != nil:
		return err
	case !away:
		return r.stay()
	}
	r.finish()
	return nil
}

// stay leaves the guilty event undone, since the circuit is not closed: it is tried anew after
// that. One that is not to be called lets the next part that is try the circuit; where there is
// none the circuit is left to others.
func (r *round) stay() error {
	r.anew()
	if err := r.persist(); err != nil {
		return err
	}
	i := slices.IndexFunc(r.parts, func(p part) bool { return p.Do == triage.Call })
	if i >= 0 {
		next := r.parts[i]
		r.parts = slices.Insert(slices.Delete(r.parts, i, i+1), 0, next)
		return nil
	}
	for {
		changed := r.w.fn.circuit.Changed()
		if record, _ := r.w.fn.circuit.Record(); record.Closed() {
			return nil
		}
		if err := wait(r.ctx, r.b.Leaving(), changed); err != nil {
			return err
		}
	}
}
