package functions

import (
	"slices"

	"github.com/eventyard/eventyard/internal/functions/triage"
)

// putAway is of a guilty event: the failure is counted, and if that or another opens the circuit it stays undone.
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
	away, err := r.w.putAway(r.ctx, r.b.Leaving(), p.Unit, r.w.poisonEvent(ev, p.Unit, p.err))
	switch {
	case err != nil:
		return err
	case !away:
		return r.stay()
	}
	r.finish()
	return nil
}

// stay leaves the guilty event undone, since the circuit is not closed: it is tried anew after that. One that is not to be called lets the next
// part that is try the circuit; where there is none the circuit is left to others.
func (r *round) stay() error {
	r.anew()
	if err := r.persist(); err != nil {
		return err
	}
	i := slices.IndexFunc(r.parts, func(p part) bool { return p.Do == triage.Call })
	if i < 0 {
		return r.untilClosed()
	}
	next := r.parts[i]
	r.parts = slices.Insert(slices.Delete(r.parts, i, i+1), 0, next)
	return nil
}

// untilClosed waits for the circuit without trying it.
func (r *round) untilClosed() error {
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
