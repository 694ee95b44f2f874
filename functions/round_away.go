package functions

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/triage"
)

// putAway is of a guilty event: the circuit is asked for leave, and if it is not closed, or this
// failure is too many, the event stays undone. One that was intended has had leave, and its poison
// event may be written already.
func (r *round) putAway(p *part) error {
	ev := r.events(p.Events)[0]
	if !p.intended {
		if err := r.ask(); err != nil {
			return err
		}
		if !p.allowed || !r.w.fn.circuit.Stands(p.term) {
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
	if err := w.putAway(r.ctx, r.b.Leaving(), u, l); err != nil {
		return err
	}
	r.finish()
	return nil
}

// ask asks for leave to put the first part away, together with all that follow it and are guilty,
// too: that is one question and one round of the store for all of them.
func (r *round) ask() error {
	if r.parts[0].allowed {
		return nil
	}
	var samples []breaker.Sample
	for _, p := range r.parts {
		if p.Do != triage.PutAway || p.intended || p.allowed {
			break
		}
		samples = append(samples, r.sample(p.Unit, p.err))
	}
	allowed, term, err := r.w.mayPutAway(r.ctx, r.b.Leaving(), r.term, samples)
	for i := range allowed {
		r.parts[i].allowed, r.parts[i].term = true, term
	}
	return err
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
