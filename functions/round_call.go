package functions

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// call waits for the retry's time and for the circuit, and calls.
func (r *round) call(p *part) error {
	if isClosed(r.stop) {
		return circuit.ErrLeaving
	}
	if p.Wait > 0 {
		if err := r.persist(); err != nil { // attempts survive
			return err
		}
		if err := sleep(r.ctx, r.b.Leaving(), p.Wait); err != nil {
			return err
		}
		p.Wait = 0
	}
	pass, err := r.gate()
	if err != nil {
		return err
	}
	if pass.Probe {
		return r.probe(pass)
	}
	return r.attempt(p.Unit, false, r.take)
}

// gate waits until the circuit lets the first part through. What has waited for it gets a fresh
// round of tries, which is stored before: this instance may not live to see the circuit closed.
func (r *round) gate() (circuit.Pass, error) {
	if r.w.fn.open.Load() {
		r.anew()
		if err := r.persist(); err != nil {
			return circuit.Pass{}, err
		}
	}
	if err := r.letOthersProbe(); err != nil {
		return circuit.Pass{}, err
	}
	pass, err := r.w.fn.circuit.Wait(r.ctx, r.b.Leaving())
	if err != nil {
		return pass, err
	}
	if r.term >= 0 && r.term != pass.Term {
		r.anew()
	}
	r.term = pass.Term
	return pass, nil
}

// anew gives all parts a fresh round of tries: what failed while the circuit was open, or before it
// opened, says little about them. An event that instances die of is not called again all the same.
func (r *round) anew() {
	r.w.fn.needs.anew()
	for i := range r.parts {
		p := &r.parts[i]
		if p.Do == triage.Finish || p.intended {
			continue
		}
		p.Unit, p.Wait, p.allowed, p.since = p.Anew(), 0, false, triage.Since{}
		if !r.w.fn.policy.Condemned(p.Unit) {
			p.Do = triage.Call
		}
	}
	r.w.record.change(func(work *triage.Work) {
		for _, u := range work.Units {
			if !u.Calling { // that is another lane's, which is at it
				work.Put(u.Anew())
			}
		}
		for _, p := range r.parts {
			if p.Do != triage.Finish && !p.intended {
				work.Put(p.Unit)
			}
		}
	})
}

// attempt makes one call for a unit, and then is told what came of it. Events that have failed
// before, or are suspected to kill, are recorded as being called. Those that may have killed are
// called alone, until that they have not is stored.
func (r *round) attempt(u triage.Unit, probe bool, then func(outcome) error) error {
	work, solo := r.w.record.look(), r.w.fn.host.solo
	end, err := solo.end, error(nil)
	if work.Wary(u) {
		end, err = solo.alone(r.ctx, r.b.Leaving())
	} else {
		err = solo.share(r.ctx, r.b.Leaving())
	}
	if err != nil {
		return err
	}
	defer end()
	if work.Recorded(u) {
		calling := u
		calling.Calling = true
		r.w.record.change(func(work *triage.Work) { work.Put(calling) })
		err := r.persist()
		if err == nil {
			r.stale = u.Events.Last()
		}
		if err != nil || r.w.fn.open.Load() && !probe { // that took a while: back to the gate
			r.w.record.change(func(work *triage.Work) { work.Put(u) })
			return err
		}
	}
	err = then(r.w.fn.invoke(r.ctx, r.w.batch(r.events(u.Events), u.Tries()+1), r.stop))
	if err == nil && work.Wary(u) {
		err = r.persist()
	}
	return err
}

// take makes the outcome of a call for the first part into parts.
func (r *round) take(out outcome) error {
	u := r.parts[0].Unit
	if out.cancelled {
		return r.interrupted(u, out.finished)
	}
	var elsewhere triage.Elsewhere
	elsewhere.Good, elsewhere.Down = r.w.fn.circuit.Elsewhere()
	sight, now := r.w.fn.needs.ended(out, u.Events.Len(), r.parts[0].since, r.id, elsewhere)
	u, whole, each := sight.Judge(u, out.whole, out.each)
	outage := judgement{whole: whole, each: each}.down() // and no event's fault
	switch {
	case out.succeeded(int(u.Events.Len())):
		r.w.fn.circuit.Succeeded(out.clock)
	case !outage:
		r.w.fn.circuit.FoundUp()
	}
	parts := r.w.fn.policy.After(u, whole, each, rand.Float64())
	list, down, wait := make([]part, 0, len(parts)+len(r.parts)-1), false, time.Duration(0)
	for _, p := range parts {
		down, wait = down || p.Down, max(wait, p.Wait)
		list = append(list, part{Part: p, err: cmp.Or(out.errs[p.Events.First()], out.err), since: now})
	}
	r.parts = append(list, r.parts[1:]...)
	r.w.record.change(func(work *triage.Work) { work.Settle(parts) })
	if !out.bad() {
		return nil
	}
	r.w.fn.failed(r.w.part.ID(), u, out)
	failures, err := 0, error(nil)
	if r.w.fn.Breaker.Attempts || down {
		failures = 1
	}
	switch { // what follows looks at the circuit anyway
	case outage:
		_, err = r.w.fn.circuit.FoundDown(r.ctx, wait, failures, r.sample(u, out.err))
	case failures > 0:
		_, err = r.w.fn.circuit.Failed(r.ctx, failures, r.sample(u, out.err))
	}
	return r.notify("count the failure", err)
}

// interrupted is after a call that was cancelled: it counts for nothing (F2), but for what Each had
// done before.
func (r *round) interrupted(u triage.Unit, finished int) error {
	for _, ev := range r.events(u.Events)[:finished] {
		done := ranges.SetOf(ev.Sequence)
		r.settled(done)
		u.Events = u.Events.Minus(done)
	}
	r.w.fn.counts.done.Add(int64(finished))
	r.w.record.change(func(work *triage.Work) {
		work.Drop(r.parts[0].Events)
		work.Put(u) // not as being called
	})
	return context.Cause(r.ctx)
}
