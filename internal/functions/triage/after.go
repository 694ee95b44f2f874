package triage

import (
	"cmp"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// Verdict is what a call says of an event (or of all).
type Verdict int

const (
	Done      Verdict = iota
	Failed            // by policy
	Later             // by policy, but after Result.Wait
	Poison            // put away without further tries
	Skip              // done, in a way: counted
	Untouched         // not tried: it comes again with the attempts it had
	// Unavailable: what the function needs was reached and broke down, or said that it cannot.
	// Nobody is guilty of that; where others succeed meanwhile Sight.Judge makes it Failed or
	// Later.
	Unavailable
	Unreachable // what the function needs was not reached: nobody is guilty of that
)

// Verdicts is how many there are.
const Verdicts = Unreachable + 1

// Result is a verdict and its circumstances.
type Result struct {
	Verdict Verdict
	Wait    time.Duration // Later's, and of what is down; 0: as the policy says
	Reason  string
}

// Do is what is to be done with a part.
type Do int

const (
	Finish  Do = iota // nothing: these are done
	Call              // call again, after Part.Wait
	PutAway           // one event: it is guilty, and a failure in the breaker's sense
)

// Part is some of a unit's events and what is to be done with them.
type Part struct {
	Unit
	Do   Do
	Wait time.Duration
	// Skipped: Finish by Skip.
	Skipped bool
	// Down: what the function needs has been down for longer than the policy's retries, which the
	// breaker counts as a failure. The events are not to blame.
	Down bool
}

// After says what becomes of a unit after a call (F3, F4). whole is for all events but those that
// each has a result of its own. Parts come in the order of their first event, each event in exactly
// one of them.
//
//   - all done: one Finish.
//   - a whole unit that failed: Call with Attempts and Used one higher, after the policy's wait;
//     retries used up and more than one event: two halves, left and right, Halved, called at once;
//     one event: PutAway.
//   - Poison of several events without results of their own: halves at once, which have the tries
//     that the whole had left, since what fails there for another reason has not been tried enough;
//     of one: PutAway.
//   - a Halved unit of several events that failed: halves again; of one: called once more, soon, if
//     there are retries at all, then PutAway. Later in a Halved unit waits and calls again while
//     Used is within the policy: a program that is busy says nothing against an event.
//   - Unavailable and Unreachable use up nothing: Call with Attempts and Down one higher, after the
//     policy's wait; once there were as many as it has retries after a back-off, and Part.Down.
//     Several events that are Unavailable are halved then: if some succeed that tells of the
//     others.
//   - results of their own: the failed ones stay together in one unit (Attempts+1); when used up
//     each is PutAway, since it is known which. Untouched ones are a unit of their own with the
//     numbers they had; if that is all of them, they wait, as nothing would come of calling at
//     once.
func (p Policy) After(u Unit, whole Result, each map[int64]Result, random float64) []Part {
	u.Calling = false
	by, rest := sortOut(u.Events, whole, each)
	var parts []Part
	if len(by[Done]) > 0 {
		parts = append(parts, Part{Unit: u.part(by[Done]), Do: Finish})
	}
	if len(by[Skip]) > 0 {
		skipped, reason := u.part(by[Skip]), whole.Reason
		if own, ok := each[by[Skip].First()]; ok {
			reason = own.Reason
		}
		skipped.Reason = shorten(reason, maxReasonBytes)
		parts = append(parts, Part{Unit: skipped, Do: Finish, Skipped: true})
	}
	if events := by[Untouched]; len(events) > 0 {
		part := Part{Unit: u.part(events), Do: Call}
		if events.Equal(u.Events) {
			part.Wait = max(p.Wait(1, random), untouchedWait)
		}
		parts = append(parts, part)
	}
	parts = append(parts, p.afterOwn(u, by, each, random)...)
	if len(rest) > 0 {
		parts = append(parts, p.afterWhole(u.part(rest), whole, random)...)
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Events.First(), b.Events.First()) })
	return parts
}

// verdicts are events by verdict.
type verdicts [Verdicts]ranges.Set

// sortOut gives the events that have results of their own by verdict, and the rest, which failed
// together; where the rest did not fail it is the same as if each had that result.
func sortOut(events ranges.Set, whole Result, each map[int64]Result) (by verdicts, rest ranges.Set) {
	rest = events
	if len(each) > 0 {
		var numbers [Verdicts][]int64
		for n, r := range each {
			v := r.Verdict
			if v < Done || v >= Verdicts {
				v = Failed // none of ours: nothing is done with for want of a name
			}
			if events.Has(n) {
				numbers[v] = append(numbers[v], n)
			}
		}
		for v := range by {
			by[v] = ranges.SetOf(numbers[v]...)
			rest = rest.Minus(by[v])
		}
	}
	if v := whole.Verdict; v == Done || v == Skip || v == Untouched {
		by[v] = by[v].Union(rest)
		rest = nil
	}
	return by, rest
}

// afterOwn is for events that failed with results of their own, of which there are not many.
func (p Policy) afterOwn(u Unit, by verdicts, each map[int64]Result, random float64) (parts []Part) {
	tried := u.failed("")
	away, again, wait := by[Poison], ranges.Set(nil), time.Duration(0)
	switch {
	case len(by[Failed]) == 0:
	case p.decided(tried):
		away = away.Union(by[Failed])
	default:
		again, wait = by[Failed], p.again(tried, random)
	}
	if p.spent(tried) {
		away = away.Union(by[Later])
	} else {
		again = again.Union(by[Later])
		for n := range by[Later].All() {
			wait = max(wait, each[n].Wait)
		}
	}
	if down := by[Unavailable].Union(by[Unreachable]); len(down) > 0 { // it is known which: nothing is to be found out by halves
		first := each[down.First()]
		for n := range down.All() {
			first.Wait = max(first.Wait, each[n].Wait)
		}
		first.Verdict = Unreachable
		parts = append(parts, p.afterDown(u.part(down), first, random)...)
	}
	for n := range away.All() {
		parts = append(parts, Part{Unit: u.part(ranges.SetOf(n)).failed(each[n].Reason), Do: PutAway})
	}
	if len(again) > 0 {
		parts = append(parts, Part{Unit: u.part(again).failed(each[again.First()].Reason), Do: Call, Wait: wait})
	}
	return parts
}

// afterWhole is for events that failed together.
func (p Policy) afterWhole(u Unit, r Result, random float64) []Part {
	if r.Verdict == Unavailable || r.Verdict == Unreachable {
		return p.afterDown(u, r, random)
	}
	used := u.Used
	u = u.failed(r.Reason)
	switch {
	case r.Verdict == Poison:
		u.Used = used // of those that are not poison it says nothing
		return u.divide()
	case r.Verdict == Later && !p.spent(u):
		return []Part{{Unit: u, Do: Call, Wait: max(r.Wait, 0)}}
	case r.Verdict != Later && !p.usedUp(u):
		return []Part{{Unit: u, Do: Call, Wait: p.again(u, random)}}
	}
	if u.Events.Len() > 1 {
		u.Halved, u.Used = true, 0
	}
	return u.divide()
}

// afterDown is for events whose call failed through no fault of theirs.
func (p Policy) afterDown(u Unit, r Result, random float64) []Part {
	u = u.down(r.Reason)
	parts := []Part{{Unit: u, Do: Call}}
	again := p.Retries < 0 || u.Down <= p.Retries
	if !again && r.Verdict == Unavailable && u.Events.Len() > 1 {
		parts = u.divide()
	}
	parts[0].Wait, parts[0].Down = p.downWait(u.Down, random), !again
	if r.Wait > 0 {
		parts[0].Wait = r.Wait
	}
	return parts
}
