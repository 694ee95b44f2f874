package triage

import "time"

// Endpoint is what calls have shown of whatever a function needs, be it a program or a database: by
// that it is told whether an event brings it down, or is only there when it is down. The zero
// Endpoint knows nothing. It is a plain value: who owns it guards it.
//
// Time is counted in calls that have begun.
type Endpoint struct {
	now int64
	// good is when the newest call began that succeeded, goodAt by the clock.
	good   int64
	goodAt time.Time
	// judged is when events were last found guilty by what others have met elsewhere.
	judged int64
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

// Succeeded is told of a call by its time, and when it began by the clock.
func (e *Endpoint) Succeeded(at int64, began time.Time) {
	if at > e.good {
		e.good, e.goodAt = at, began
	}
}

// Down is told of a call that found the endpoint down, and by whom it was made: by a number above
// zero.
func (e *Endpoint) Down(at, by int64) {
	if e.down[0].by != by {
		e.down[1] = e.down[0]
	}
	e.down[0] = finding{by, at}
}

// Anew forgets that events were found guilty by what others have met elsewhere.
func (e *Endpoint) Anew() { e.judged = 0 }

// Since is when the last call for some events ended, by the endpoint's time. By the clock it is the
// first of those after which no success elsewhere is known: that becomes known late. The zero Since
// is of events that were not called before.
type Since struct {
	at     int64
	clock  time.Time
	guilty bool // they were found so by what succeeded elsewhere
}

// Ended is a call that has ended.
type Ended struct {
	Since Since // of its events
	By    int64 // the caller
	Alone bool  // it was for one event
	Broke bool  // the endpoint was Unavailable
	Now   time.Time
}

// Elsewhere is what other instances have met at the endpoint, by this one's clock: when, at the
// earliest, their newest call began that succeeded, and when one was seen that has found it down
// since. Zero: none.
type Elsewhere struct{ Good, Down time.Time }

// See gives what the others show to the caller of a call, and the Since of its events from then on.
//
// What succeeds elsewhere counts for less than what succeeds here: it may be the way from here that
// is blocked. So it is not heeded while others find the endpoint down; it is for single events
// alone, and when it has found one guilty, for no other before something has succeeded here.
func (e *Endpoint) See(c Ended, elsewhere Elsewhere) (Sight, Since) {
	s := Sight{
		Well: c.Since.at > 0 && e.good > c.Since.at,
		Ill:  elsewhere.Down.After(elsewhere.Good) && elsewhere.Down.After(e.goodAt),
	}
	for _, f := range e.down {
		s.Ill = s.Ill || f.by != 0 && f.by != c.By && f.at > e.good
	}
	next := Since{e.now, c.Since.clock, c.Since.guilty}
	if next.clock.IsZero() {
		next.clock = c.Now
		return s, next
	}
	turn := next.guilty || e.judged == 0 || e.good > e.judged
	if c.Alone && c.Broke && turn && !s.Ill && elsewhere.Good.After(next.clock) {
		s.Elsewhere, e.judged = true, e.now
		next.clock, next.guilty = c.Now, true
	}
	return s, next
}

// Sight is what others have met at the endpoint when a call for some events fails there.
type Sight struct {
	// Well: calls for others have begun and succeeded since the last call for these.
	Well bool
	// Elsewhere: they have so at another instance, since some call for this event.
	Elsewhere bool
	// Ill: others have found it down, and none has succeeded in a call that began later.
	Ill bool
}

// Judge says whether events are guilty of an endpoint's being Unavailable: if others succeed
// between their calls, and from then on as long as it is not down for the others, too; by what
// succeeds elsewhere this once. Guilty ones have Failed, or ask for Later, as any other. What is
// Unreachable is nobody's fault.
func (s Sight) Judge(u Unit, whole Result, each map[int64]Result) (Unit, Result, map[int64]Result) {
	broke := whole.Verdict == Unavailable
	for _, r := range each {
		broke = broke || r.Verdict == Unavailable
	}
	if !broke {
		return u, whole, each
	}
	u.Accused = u.Accused || s.Well
	if !s.Well && !s.Elsewhere && (!u.Accused || s.Ill) {
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
