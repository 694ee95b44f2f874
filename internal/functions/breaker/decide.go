package breaker

import (
	"fmt"
	"time"
)

// View is what an instance knows when it decides.
type View struct {
	Record Record
	// Unchanged is how long the record has been seen as it is, on the instance's own clock.
	Unchanged time.Duration
	// Failures is Sum's, Down is AllDown's; Samples the newest errors known here.
	Failures int
	Down     bool
	Samples  []Sample
	// Self is the instance; Ready: it has an event to try.
	Self  string
	Ready bool
	// Incident is a fresh random name in case a new one begins; Now is for show.
	Incident string
	Now      time.Time
}

// ProbeDeadline is how long a prober is left alone that does not show that it lives, before another
// takes its place. Taking over is safe at any time, by the comparison of terms; it only makes what
// the first finds out worthless.
const ProbeDeadline = 12 * time.Second

// Decide gives the record that is to replace the present one, and whether any is. Closed opens on
// more than p.Failures, or when all is Down. Open becomes HalfOpen after the (doubled) Probe, by an
// instance that is Ready, which is then the Prober. A HalfOpen record whose prober has done nothing
// for ProbeDeadline passes to an instance that is Ready. Held stays.
func Decide(p Policy, v View) (Record, bool) {
	p = p.WithDefaults()
	switch r := v.Record; {
	case r.Closed():
		if p.tripped(v.Failures) || v.Down && p.Failures >= 0 {
			return opened(p, v), true
		}
	case r.State == Open:
		if wait, probes := p.ProbeWait(r); probes && v.Ready && v.Unchanged >= wait {
			return probing(p, v), true
		}
	case r.State == HalfOpen:
		if v.Ready && v.Unchanged >= ProbeDeadline {
			return probing(p, v), true
		}
	}
	return v.Record, false
}

func opened(p Policy, v View) Record {
	r := v.Record.begin(v.Incident, v.Now)
	r.Failures, r.Samples, r.Policy = v.Failures, Newest(v.Samples), p
	reason := fmt.Sprintf("%d failures within %v, more than %d", v.Failures, p.Within, p.Failures)
	if !p.tripped(v.Failures) {
		reason = fmt.Sprintf("for %v every call found that what the function needs is down", p.Within)
	}
	return r.next(Open, v.Self, reason, v.Now)
}

func probing(p Policy, v View) Record {
	r := v.Record.next(HalfOpen, v.Self, "one event is tried", v.Now)
	r.Prober, r.Policy = v.Self, p
	return r
}

// Probed gives the record after the prober's call: closed, or open again for longer. A record that
// is not HalfOpen stays: somebody has decided otherwise meanwhile.
func Probed(r Record, ok bool, by, reason string, now time.Time) Record {
	if r.State != HalfOpen {
		return r
	}
	if ok {
		return r.closed(by, reason, now)
	}
	r.Trips++
	return r.next(Open, by, reason, now)
}

// Returned gives the record when the prober could not try (its call was cancelled): open as before,
// tried again soon. A record that is not HalfOpen stays.
func Returned(r Record, by string, now time.Time) Record {
	if r.State != HalfOpen {
		return r
	}
	r = r.next(Open, by, "the event could not be tried", now)
	r.Untried = true
	return r
}

// Hold gives the record after an operator opened or paused it; held stays held (false: nothing to
// change). What was open stays the same incident.
func Hold(r Record, incident, by, reason string, now time.Time) (Record, bool) {
	if r.State == Held {
		return r, false
	}
	if r.Closed() {
		r = r.begin(incident, now)
	}
	return r.next(Held, by, reason, now), true
}

// Resume gives the record after it was closed by an operator or a link; false: it is closed.
func Resume(r Record, by, reason string, now time.Time) (Record, bool) {
	if r.Closed() {
		return r, false
	}
	return r.closed(by, reason, now), true
}

// begin is a new incident, in a record that is yet to change.
func (r Record) begin(incident string, now time.Time) Record {
	return Record{State: r.State, Term: r.Term, Incident: incident, Opened: clock(now), Policy: r.Policy}
}

// next is the same incident in another state.
func (r Record) next(s State, by, reason string, now time.Time) Record {
	r.State, r.Term = s, r.Term+1
	r.Since, r.By, r.Reason = clock(now), cut(by, maxByBytes), cut(reason, maxReasonBytes)
	r.Prober, r.Tries, r.Untried = "", nil, false
	return r
}

// closed forgets the incident: with its name gone, no link or notice about it works any more.
func (r Record) closed(by, reason string, now time.Time) Record {
	return Record{Term: r.Term, Policy: r.Policy}.next(Closed, by, reason, now)
}

// clock is a time as it comes back from a store.
func clock(now time.Time) time.Time { return now.Round(0).UTC() }
