package circuit

import (
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// knowledge is what a member knows of its circuit. It never asks the store.
type knowledge struct {
	policy breaker.Policy
	self   string // the instance
	// gate is the pass of a closed circuit; nil: it is not closed, or nothing is known. It follows
	// record, and is all that Wait looks at while things are well.
	gate atomic.Pointer[Pass]

	mu sync.Mutex
	// Guarded by mu. record, version and since change only while Member.asking is held, too.
	known   bool
	record  breaker.Record
	version processor.Version
	since   time.Time     // when version was first seen
	doubt   time.Time     // since when an older record is read; zero: it is not
	changed chan struct{} // closed and made anew with every new term
	window  breaker.Window
	samples []breaker.Sample // of this term
	others  []breaker.Seen   // never changed, only replaced
	good    time.Time        // a call of another instance that succeeded began then, or later; zero: none
	waiting int              // how many have an event to try
	probe   probe
}

// Record is the circuit as last seen, and how many failures within the window are known here.
// Before the first good read its State is empty.
func (k *knowledge) Record() (breaker.Record, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record, k.failuresLocked(time.Now())
}

// Changed is closed when the circuit is no longer as Record gave it: for those who make calls that
// an opening should end. Who wants to miss nothing takes it before asking Record.
func (k *knowledge) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

func (k *knowledge) failuresLocked(now time.Time) int {
	within := k.policy.Within
	return breaker.Sum(k.record.Term, within, k.window.Tally(within, now), k.others, now)
}

// viewLocked is what is known here; an incident's name is added where one begins.
func (k *knowledge) viewLocked(now time.Time) breaker.View {
	within := k.policy.Within
	return breaker.View{
		Record: k.record, Unchanged: now.Sub(k.since), Failures: k.failuresLocked(now),
		Down:    breaker.AllDown(k.record.Term, within, k.window.Tally(within, now), k.others, now),
		Samples: k.samples, Self: k.self, Ready: k.waiting > 0, Now: now,
	}
}

func (k *knowledge) present() (breaker.Record, processor.Version) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record, k.version
}

func (k *knowledge) probing() probe {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.probe
}

// doubtful is for how long a record of a lower term than the adopted one is taken for what a
// replica has that lags behind. If it stays it was removed, and perhaps begun anew.
const doubtful = 3 * time.Second

// isNews tells whether a record that was read is to be adopted. Mostly it is the one that was
// adopted last.
func (k *knowledge) isNews(r breaker.Record, v processor.Version) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known || r.Term >= k.record.Term {
		k.doubt = time.Time{}
		return !k.known || v != k.version
	}
	if k.doubt.IsZero() {
		k.doubt = time.Now()
	}
	return time.Since(k.doubt) >= doubtful
}

func (k *knowledge) doubts() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.doubt.IsZero()
}

// adopt makes a record the one that is known here, and wakes who waits for a change. It gives the
// record before, and whether this is another and not the same written again, by a prober that needs
// its time.
func (k *knowledge) adopt(r breaker.Record, version processor.Version) (was breaker.Record, another bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was = k.record
	another = !k.known || r.Term != was.Term || r.State != was.State || r.Incident != was.Incident
	k.known, k.record, k.version, k.since, k.doubt = true, r, version, time.Now(), time.Time{}
	if !another {
		return was, false
	}
	if r.Closed() {
		k.samples = nil
		k.window.Turn(r.Term)
		k.gate.Store(&Pass{Term: r.Term})
	} else {
		k.gate.Store(nil)
	}
	k.probe = k.probe.after(r, k.self)
	close(k.changed)
	k.changed = make(chan struct{})
	return was, true
}

// count adds failures, while the circuit is closed: what was under way when it opened says no more
// than what opened it.
func (k *knowledge) count(n int, s []breaker.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known || !k.record.Closed() {
		return
	}
	k.window.Add(k.record.Term, n, time.Now())
	k.samples = breaker.Newest(append(k.samples, s...))
}

// foundDown notes that a call found what the function needs down, while the circuit is closed, and
// how long is waited then.
func (k *knowledge) foundDown(wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known && k.record.Closed() {
		k.window.FoundDown(k.record.Term, wait, time.Now())
	}
}

// GaveUp notes that a partition is given up, with events that wait or not.
func (k *knowledge) GaveUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.window.GaveUp(time.Now())
}

// FoundUp notes that a call reached what the function needs, whatever came of it.
func (k *knowledge) FoundUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.window.FoundUp(time.Now())
}

// Succeeded is FoundUp by a call that began at a time and did something.
func (k *knowledge) Succeeded(began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.window.Succeeded(began, time.Now())
}

// Elsewhere is what other instances have met lately, on this one's clock: when, at the earliest, the
// newest call began that is known to have succeeded, and when one was last seen that has found
// nothing but what is down since. Zero: none. They tell while somebody finds it down, so that it
// may be some seconds before a success is known.
func (k *knowledge) Elsewhere() (good, down time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.good, breaker.NewestDown(k.record.Term, k.policy.Within, k.others, time.Now())
}

// othersDown tells whether another instance shows calls that found nothing but what is down.
func (k *knowledge) othersDown() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.others, func(o breaker.Seen) bool { return o.Tally.Down > 0 && o.Tally.Term == k.record.Term })
}

// tally is what is to be shared of this instance's failures, whether anybody counts, and whether
// they count these.
func (k *knowledge) tally(now time.Time) (t breaker.Tally, closed, counts bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, closed = k.window.Tally(k.policy.Within, now), k.record.Closed()
	return t, closed, closed && t.Term == k.record.Term
}

// observed takes what the others count, and when a call of theirs succeeded.
func (k *knowledge) observed(others []breaker.Seen, good time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.others = others
	if good.After(k.good) {
		k.good = good
	}
}

// due is what the record is to become by what is known here; false: it is to stay.
func (k *knowledge) due() (breaker.Record, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known || k.probe.underWay() {
		return breaker.Record{}, false
	}
	v := k.viewLocked(time.Now())
	next, due := breaker.Decide(k.policy, v)
	if due && v.Record.Closed() {
		v.Incident = rand.Text()
		next, due = breaker.Decide(k.policy, v)
	}
	return next, due
}

// never is a time that does not come: Run looks at the store more often.
const never = 24 * time.Hour

// decisionDue is when Run has to look at the record or the probe, if nothing happens before.
func (k *knowledge) decisionDue(now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if due, proves := k.probe.proofDue(); proves {
		return due
	}
	wait, probes := k.policy.ProbeWait(k.record)
	switch {
	case k.probe.stage == ended, k.probe.stage == offered && k.waiting == 0:
		return now
	case k.probe.stage != none, !k.known:
	case k.record.Closed():
		if _, due := breaker.Decide(k.policy, k.viewLocked(now)); due {
			return now
		}
	case k.waiting == 0:
	case k.record.State == breaker.Open && probes:
		return k.since.Add(wait)
	case k.record.State == breaker.HalfOpen:
		return k.since.Add(breaker.ProbeDeadline)
	}
	return now.Add(never)
}

// take gives a pass if there is one, else what to wait for.
func (k *knowledge) take() (Pass, bool, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.gate.Load(); p != nil {
		return *p, true, nil
	}
	if k.probe.stage == offered {
		k.probe.stage, k.probe.since, k.probe.seen = taken, time.Now(), time.Now()
		return Pass{Term: k.probe.term, Probe: true}, true, nil
	}
	return Pass{}, false, k.changed
}

// join changes the number of those who have an event to try, and gives it.
func (k *knowledge) join(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting += n
	return k.waiting
}

// end notes how the probe of a pass ended; false: the circuit has changed since, and it does not
// matter any more.
func (k *knowledge) end(p Pass, how probe) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !p.Probe || k.probe.stage != taken || k.probe.term != p.Term {
		return false
	}
	how.stage, how.term = ended, p.Term
	k.probe = how
	return true
}

// endUnwanted ends a probe that was taken for waiters of whom none is left.
func (k *knowledge) endUnwanted() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.probe.stage == offered && k.waiting == 0 {
		k.probe = probe{stage: ended, term: k.probe.term, untried: true}
	}
}

// tries notes which event the probe of a pass tries, of which the others hear soon; false: it is over.
func (k *knowledge) tries(p Pass, e breaker.Event) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !p.Probe || k.probe.stage != taken || k.probe.term != p.Term {
		return false
	}
	k.probe.tries, k.probe.seen = &e, time.Now().Add(triesAfter-proveEvery)
	return true
}

// proven notes that the others have heard that the probe is under way.
func (k *knowledge) proven() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.probe.seen = time.Now()
}
