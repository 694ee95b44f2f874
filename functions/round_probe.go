package functions

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// probe tries the circuit with the first event of the first part.
func (r *round) probe(pass circuit.Pass) error {
	r.split()
	u, notifies := r.parts[0].Unit, false
	var out outcome
	r.w.fn.circuit.Trying(pass, r.w.part.ID(), u.Events.First())
	err := r.attempt(u, true, func(o outcome) error {
		switch out = o; {
		case out.cancelled:
			return r.interrupted(u, out.finished)
		case out.bad(): // the event stays undone, with one attempt more, whatever the policy would do with it
			r.w.fn.failed(r.w.part.ID(), u, out)
			r.tried++
			undone := r.w.fn.policy.After(u, out.whole, out.each, 0)[0].Anew()
			r.parts[0] = part{Part: triage.Part{Unit: undone, Do: triage.Call}, err: out.err}
			r.w.record.change(func(work *triage.Work) { work.Put(undone) })
			notifies = true
			return nil
		}
		err := r.take(out)
		notifies = r.parts[0].Do == triage.Finish // else it was left untouched, which tells nothing
		return err
	})
	if !notifies {
		r.w.fn.circuit.Returned(pass)
		return err
	}
	r.term = -1
	// That may take as long as the store is away: the call is over, and keeps no other from being
	// made.
	reported := r.notify("tell how the probe ended", r.w.fn.circuit.Probed(r.ctx, pass, !out.bad(), r.sample(u, out.err)))
	return cmp.Or(err, reported)
}

// split makes the first event of the first part one of its own.
func (r *round) split() {
	p := r.parts[0]
	first := ranges.SetOf(p.Events.First())
	rest := p.Events.Minus(first)
	if len(rest) == 0 {
		return
	}
	head, tail := p, p
	head.Events, head.Counted = first, 0 // deaths in company may have been the others'
	tail.Events = rest
	if rest.Len() == 1 {
		tail.Counted = 0
	}
	r.parts = slices.Insert(r.parts[1:], 0, head, tail)
}

// letOthersProbe is for a partition whose probes have failed. Its event may be at fault rather than
// what the function needs, and would keep the circuit open for ever: so it tries again only if
// nobody else has, a little while after the next probe is due.
func (r *round) letOthersProbe() error {
	f := r.w.fn
	for r.tried > 0 && f.open.Load() {
		changed := f.circuit.Changed()
		record, _ := f.circuit.Record()
		wait, probes := f.Breaker.policy().ProbeWait(record)
		if !probes {
			return nil
		}
		if record.State == breaker.HalfOpen {
			wait = breaker.ProbeDeadline
		}
		timer := time.NewTimer(wait + time.Duration(min(r.tried, 10))*time.Second)
		select {
		case <-timer.C:
			return nil
		case <-changed:
			timer.Stop()
		case <-r.b.Leaving():
			timer.Stop()
			return circuit.ErrLeaving
		case <-r.ctx.Done():
			timer.Stop()
			return context.Cause(r.ctx)
		}
	}
	return nil
}
