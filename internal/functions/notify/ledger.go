package notify

import (
	"cmp"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// What a ledger holds at most, so that it stays far below what the meta store takes, whatever
// happens while nothing can be sent. The oldest goes first: the newest state is what matters.
const (
	maxTargets = 60 // of a function: fifty of its own, and ten of all (config)
	maxEvents  = 32 // changes that wait to be published
	maxNotices = 3  // that wait for one target
)

// kind is what is to be sent.
type kind string

const (
	kindEvent  kind = "event"  // to the grid: each change
	kindOpened kind = "opened" // to people: an incident began
	kindHeld   kind = "held"   // to people: an operator holds it
	kindEnded  kind = "ended"  // to people: the incident they were told of is over
	kindTest   kind = "test"
)

// ledger is what has been noticed of a circuit, whom we told, and what is still to be sent. It is
// one value, so that a change is noticed and its notices are put down in one step. It is pure: who
// changes it stores it by compare-and-set.
type ledger struct {
	Group    processor.Group `json:"group"`
	Function string          `json:"function"`
	Last     mark            `json:"last"`
	Notified *notified       `json:"told,omitempty"` // nil: people know of nothing that is not over
	Changes  []change        `json:"changes,omitempty"`
	Items    []item          `json:"items,omitempty"`
	Next     int64           `json:"next"`          // number of the next change or item
	Pace     time.Time       `json:"pace,omitzero"` // see pace

	// dropped are items that left unsent with the latest change of the ledger, for who counts them.
	dropped []drop
}

// mark is the change noticed last.
type mark struct {
	Term     int64         `json:"term"`
	State    breaker.State `json:"state,omitempty"`
	Since    time.Time     `json:"since,omitzero"`
	Incident string        `json:"incident,omitempty"`
}

// notified is the incident that people have been told of, and who they are.
type notified struct {
	Incident string   `json:"incident"`
	Targets  []string `json:"targets,omitempty"`
	Held     bool     `json:"held,omitempty"` // also of that
	// Began is the circuit as it was told.
	Began breaker.Record `json:"began"`
}

// change is what items tell of.
type change struct {
	Number int64          `json:"n"`
	Record breaker.Record `json:"record"`
	// Previous is the state before, empty where changes were missed in between.
	Previous breaker.State `json:"previous,omitempty"`
	// Incident that it belongs to; a closed circuit's is the one that is over.
	Incident string `json:"incident,omitempty"`
	// Began is how the incident began, where it ended; Gone: with its function.
	Began *breaker.Record `json:"began,omitempty"`
	Gone  bool            `json:"gone,omitempty"`
}

// item is one thing to be sent to one receiver. Those for one receiver go in order.
type item struct {
	Number int64     `json:"n"`
	Kind   kind      `json:"kind"`
	Target string    `json:"target,omitempty"` // empty: the grid
	Change int64     `json:"change"`
	Since  time.Time `json:"since"`
	// Attempts have failed, and Wait is how long to wait since the last of them.
	Attempts int           `json:"attempts,omitempty"`
	Wait     time.Duration `json:"wait,omitempty"`
	// NotBefore is set where people have been told much of late.
	NotBefore time.Time `json:"notBefore,omitzero"`
	Claim     *claim    `json:"claim,omitempty"`
}

// claim says that a process is sending. Another may take it over when it has seen the same claim
// for as long as For, on its own clock: then that process has died, since an attempt takes less.
type claim struct {
	By  string        `json:"by"`
	ID  string        `json:"id"`
	For time.Duration `json:"for"`
}

// drop is an item that is not sent, and why.
type drop struct {
	item
	why outcome
}

// isBlank tells a circuit that never was open, or is no more.
func isBlank(r breaker.Record) bool {
	return r.Term == 0 && r.Incident == "" && (r.State == "" || r.State == breaker.Closed)
}

// has tells whether a record is the one that was noticed last.
func (l *ledger) has(r breaker.Record) bool {
	return r.Term == l.Last.Term && r.Since.Equal(l.Last.Since)
}

// doubts tells that a record is another than the one noticed last, and does not follow it.
func (l *ledger) doubts(r breaker.Record) bool { return r.Term <= l.Last.Term && !l.has(r) }

// isSpent: there is nothing in it to be known.
func (l *ledger) isSpent() bool { return l.Last == mark{} && l.Notified == nil && len(l.Items) == 0 }

// note notices a circuit as it is now; false: there is nothing new.
func (l *ledger) note(c Circuit, targets []string, now time.Time) bool {
	r := trimmed(c.Record)
	if l.has(r) || isBlank(r) {
		return isBlank(r) && l.noteGone(now)
	}
	l.Group, l.Function = c.Group, c.Function
	if l.Notified != nil && (r.Incident != l.Notified.Incident || r.State == breaker.Closed) {
		over := change{Record: r}
		if r.State != breaker.Closed { // the next incident has begun already, and nobody knows how this one ended
			over.Record = breaker.Record{State: breaker.Closed}
		}
		l.end(over, now)
	}
	l.publish(r, now)
	l.notify(r, targets, now)
	l.Last = mark{Term: r.Term, State: r.State, Since: r.Since, Incident: r.Incident}
	l.tidy()
	return true
}

// noteGone notices that the circuit is no more; false: that is known, or nobody knew of it. For the
// grid it is closed.
func (l *ledger) noteGone(now time.Time) bool {
	if l.Last.Term == 0 && l.Notified == nil {
		return false
	}
	if l.Notified != nil {
		end := breaker.Record{
			State: breaker.Closed, Term: l.Last.Term + 1, Since: now.UTC().Round(0), Reason: "the function, or its circuit, was removed", Policy: l.Notified.Began.Policy,
		}
		l.publish(end, now)
		l.end(change{Record: end, Gone: true}, now)
	}
	l.Last = mark{}
	l.tidy()
	return true
}

// end tells people that what they were told of is over, except those who have yet to hear of it, to
// whom it is not worth a notice any more.
func (l *ledger) end(c change, now time.Time) {
	began := l.Notified.Began
	c.Incident, c.Began = l.Notified.Incident, &began
	heard := slices.DeleteFunc(slices.Clone(l.Notified.Targets), func(target string) bool { return l.recall(target, c.Incident, now) })
	l.put(c, kindEnded, heard, now)
	l.Notified = nil
}

// notify tells people of a new incident, and that one is held.
func (l *ledger) notify(r breaker.Record, targets []string, now time.Time) {
	what := kindOpened
	switch r.State {
	case breaker.Open, breaker.HalfOpen:
	case breaker.Held:
		what = kindHeld
	default:
		return
	}
	switch {
	case l.Notified == nil:
		l.Notified = &notified{Incident: r.Incident, Targets: targets, Held: what == kindHeld, Began: r}
	case what == kindHeld && !l.Notified.Held:
		l.Notified.Held, l.Notified.Targets = true, union(l.Notified.Targets, targets)
	default:
		return // they know
	}
	l.put(change{Record: r, Incident: r.Incident}, what, targets, now)
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, text := range b {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all[:min(len(all), maxTargets)]
}

// publish has the grid told.
func (l *ledger) publish(r breaker.Record, now time.Time) {
	c := change{Record: r, Incident: cmp.Or(r.Incident, l.Last.Incident)}
	if r.Term == l.Last.Term+1 {
		c.Previous = cmp.Or(l.Last.State, breaker.Closed)
	}
	l.put(c, kindEvent, []string{""}, now)
}

func (l *ledger) put(c change, k kind, targets []string, now time.Time) {
	c.Number = l.number()
	l.Changes = append(l.Changes, c)
	it := item{Kind: k, Change: c.Number, Since: now.UTC()}
	if k != kindEvent && len(targets) > 0 {
		it.NotBefore = l.pace(it.Since)
	}
	for _, it.Target = range targets {
		it.Number = l.number()
		l.Items = append(l.Items, it)
	}
}

func (l *ledger) number() int64 {
	l.Next++
	return l.Next
}

// tidy drops what need not be sent any more, what there is no room for, and changes that nobody is
// to be told of.
func (l *ledger) tidy() {
	waiting := map[string]int{} // items of a target, from the newest
	newer := map[string]bool{}  // incidents of which a target is to be told something newer, which tells all
	for i := len(l.Items) - 1; i >= 0; i-- {
		it := l.Items[i]
		about := it.Target + "\n" + l.change(it.Change).Incident
		switch {
		case it.Claim != nil: // it is being sent
			waiting[it.Target]++
		case newer[about]:
			l.drop(i, superseded)
		case waiting[it.Target] >= maxNotices && (it.Target != "" || waiting[""] >= maxEvents):
			l.drop(i, givenUp)
		default:
			waiting[it.Target]++
			newer[about] = it.Kind != kindEvent
		}
	}
	l.Changes = slices.DeleteFunc(l.Changes, func(c change) bool {
		return !slices.ContainsFunc(l.Items, func(it item) bool { return it.Change == c.Number })
	})
}

func (l *ledger) drop(i int, why outcome) {
	l.dropped = append(l.dropped, drop{l.Items[i], why})
	l.Items = slices.Delete(l.Items, i, i+1)
}

// change gives that of a number; the zero one if there is none.
func (l *ledger) change(number int64) change {
	for _, c := range l.Changes {
		if c.Number == number {
			return c
		}
	}
	return change{}
}

// head is what a target is to be sent next.
func (l *ledger) head(target string) (item, bool) {
	i := slices.IndexFunc(l.Items, func(it item) bool { return it.Target == target })
	if i < 0 {
		return item{}, false
	}
	return l.Items[i], true
}

// claim gives an item, which is still as it was seen, to a process; false: it is not.
func (l *ledger) claim(seen item, c claim) bool {
	i := l.find(seen.Number)
	if i < 0 || sightOf(l.Items[i]) != sightOf(seen) {
		return false
	}
	l.Items[i].Claim = &c
	return true
}

// settle writes down what came of an attempt. That something was sent holds whoever has the claim
// by now, a failure only for the one who tried. wait is how long until the next attempt; an attempt
// that was cut off by our own end is none.
func (l *ledger) settle(number int64, claimed string, o outcome, wait time.Duration, cut bool) bool {
	i := l.find(number)
	if i < 0 {
		return false
	}
	if o == failed {
		it := &l.Items[i]
		if it.Claim == nil || it.Claim.ID != claimed {
			return false
		}
		it.Claim = nil
		if !cut {
			it.Attempts, it.Wait = it.Attempts+1, wait
		}
	} else {
		l.Items = slices.Delete(l.Items, i, i+1)
	}
	l.tidy()
	return true
}

func (l *ledger) find(number int64) int {
	return slices.IndexFunc(l.Items, func(it item) bool { return it.Number == number })
}

// sight is an item as it is seen by who waits for it to change.
type sight struct {
	number   int64
	attempts int
	claim    string
}

func sightOf(it item) sight {
	s := sight{number: it.Number, attempts: it.Attempts}
	if it.Claim != nil {
		s.claim = it.Claim.ID
	}
	return s
}
