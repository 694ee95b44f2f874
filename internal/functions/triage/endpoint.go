package triage

// Endpoint is what calls have shown of whatever a function needs, be it a program or a database: by
// that it is told whether an event brings it down, or is only there when it is down. The zero
// Endpoint knows nothing. It is a plain value: who owns it guards it.
//
// Time is counted in calls that have begun.
type Endpoint struct {
	now int64
	// good is when the newest call began that succeeded.
	good int64
	// down are the newest calls, of two callers, that found it down.
	down [2]finding
}

// finding is that a caller's call, which began at a time, found the endpoint down.
type finding struct{ by, at int64 }

// Begin is the time of a call that begins.
func (e *Endpoint) Begin() int64 {
	e.now++
	return e.now
}

// Succeeded is told of a call by its time.
func (e *Endpoint) Succeeded(at int64) { e.good = max(e.good, at) }

// Down is told of a call that found the endpoint down, and by whom it was made: by a number above
// zero.
func (e *Endpoint) Down(at, by int64) {
	if e.down[0].by != by {
		e.down[1] = e.down[0]
	}
	e.down[0] = finding{by, at}
}

// Now is the time, for the next See.
func (e *Endpoint) Now() int64 { return e.now }

// See gives what the others show to a caller whose last call for the same events ended at a time;
// 0: there was none.
func (e *Endpoint) See(since, by int64) Sight {
	s := Sight{Well: since > 0 && e.good > since}
	for _, f := range e.down {
		s.Ill = s.Ill || f.by != 0 && f.by != by && f.at > e.good
	}
	return s
}

// Sight is what others have met at the endpoint when a call for some events fails there.
type Sight struct {
	// Well: calls for others have begun and succeeded since the last call for these.
	Well bool
	// Ill: others have found it down, and none has succeeded in a call that began later.
	Ill bool
}

// Judge says whether events are guilty of an endpoint's being Unavailable: if others succeed
// between their calls, and from then on as long as it is not down for the others, too. Guilty ones
// have Failed, or ask for Later, as any other. What is Unreachable is nobody's fault.
func (s Sight) Judge(u Unit, whole Result, each map[int64]Result) (Unit, Result, map[int64]Result) {
	broke := whole.Verdict == Unavailable
	for _, r := range each {
		broke = broke || r.Verdict == Unavailable
	}
	if !broke {
		return u, whole, each
	}
	u.Accused = u.Accused || s.Well
	if !s.Well && (!u.Accused || s.Ill) {
		return u, whole, each
	}
	judged := make(map[int64]Result, len(each))
	for n, r := range each {
		judged[n] = r.guilty()
	}
	return u, whole.guilty(), judged
}

// guilty is the result if an Unavailable endpoint is the events' fault.
func (r Result) guilty() Result {
	switch {
	case r.Verdict != Unavailable:
	case r.Wait > 0:
		r.Verdict = Later
	default:
		r.Verdict = Failed
	}
	return r
}
