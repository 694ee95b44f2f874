package circuit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

const (
	// seenWithin is how soon all see a change in good weather: a second, and what calls take.
	seenWithin = 1100 * time.Millisecond
	// lateMost is how much later a write may be made that was not answered.
	lateMost = 3 * time.Second
)

// ledger knows everything that happened: every write of the record, every failure, every pass.
type ledger struct {
	plan  schedule
	began time.Time
	store *memory.Store

	mu sync.Mutex
	// Guarded by mu.
	writes   []write
	failures []failure
	passes   map[int64]string // probes given, by term
	outcomes map[int64]string // how they ended
	living   map[string]bool
	storm    bool
	stormEnd time.Time
	away     []away
	openings int
	broken   []string
}

type write struct {
	at time.Time
	by string
	r  breaker.Record
}

// failure was counted in one of the terms.
type failure struct {
	by          string
	began, at   time.Time
	n           int // at most; those that were not allowed to be put away may have been counted nowhere
	sure        int
	first, last int64
}

// away is events that were allowed to be put away.
type away struct {
	by   string
	at   time.Time
	n    int
	term int64
}

func newLedger(plan schedule, store *memory.Store) *ledger {
	return &ledger{
		plan: plan, began: time.Now(), store: store, passes: map[int64]string{}, outcomes: map[int64]string{}, living: map[string]bool{},
		writes: []write{{at: time.Now(), by: "nobody", r: breaker.Record{State: breaker.Closed}}},
	}
}

func (l *ledger) breaks(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaksLocked(format, args...)
}

func (l *ledger) breaksLocked(format string, args ...any) {
	if len(l.broken) < 20 {
		l.broken = append(l.broken, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) setStorm(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.storm && !is {
		l.stormEnd = time.Now()
	}
	l.storm = is
}

func (l *ledger) isStorm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storm
}

func (l *ledger) stormyWithin(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storm || (!l.stormEnd.IsZero() && time.Since(l.stormEnd) < d)
}

func (l *ledger) alive(id string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.living[id] = is
}

// wrote is called with the store's change, so that writes are in the store's order.
func (l *ledger) wrote(by string, f processor.Entry, put func() (processor.Entry, error)) (processor.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := put()
	if err != nil || f.Key != Prefix+function {
		return f, err
	}
	r, bad := breaker.DecodeRecord(f.Value)
	if bad != nil {
		l.breaksLocked("%s wrote %s: %v", by, f.Value, bad)
	}
	l.writes = append(l.writes, write{time.Now(), by, r})
	return f, nil
}

// at is the record as it was.
func (l *ledger) at(t time.Time) breaker.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.writes[0].r
	for _, w := range l.writes {
		if !w.at.After(t) {
			r = w.r
		}
	}
	return r
}

func (l *ledger) failed(f failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, f)
}

// passed: a probe's pass is given once, to the instance that the record names; any other is of a
// closed circuit, and in good weather of one that was closed a second ago.
func (l *ledger) passed(by string, p Pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	i := len(l.writes) - 1
	for i > 0 && l.writes[i].r.Term > p.Term {
		i--
	}
	w := l.writes[i]
	switch {
	case p.Probe && (w.r.Term != p.Term || w.r.State != breaker.HalfOpen || w.r.Prober != by):
		l.breaksLocked("%v: %s probes in term %d, which is %+v", now.Sub(l.began), by, p.Term, w.r)
	case p.Probe && l.passes[p.Term] != "":
		l.breaksLocked("%v: %s probes in term %d, and so does %s", now.Sub(l.began), by, p.Term, l.passes[p.Term])
	case p.Probe:
		l.passes[p.Term] = by
	case w.r.Term != p.Term || !w.r.Closed():
		l.breaksLocked("%v: %s has passed in term %d, which is %+v", now.Sub(l.began), by, p.Term, w.r)
	case !l.storm && time.Since(l.stormEnd) > 5*time.Second && i+1 < len(l.writes) && now.Sub(l.writes[i+1].at) > seenWithin:
		l.breaksLocked("%v: %s has passed in term %d, which ended %v ago", now.Sub(l.began), by, p.Term, now.Sub(l.writes[i+1].at))
	}
}

func (l *ledger) probed(term int64, ok bool) { l.outcome(term, fmt.Sprint("probed ", ok)) }
func (l *ledger) returned(term int64)        { l.outcome(term, "returned") }

func (l *ledger) outcome(term int64, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[term] = how
}

// putAway is allowed if the circuit was closed at some moment of the question, and no more within
// the window than the policy allows (R7), as far as those who have allowed it still live.
func (l *ledger) putAway(by string, asked time.Time, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.writes {
		if w.r.Closed() && (i+1 == len(l.writes) || !l.writes[i+1].at.Before(asked)) {
			l.away = append(l.away, away{by, time.Now(), n, w.r.Term})
			sum := 0
			for _, a := range l.away {
				if a.term == w.r.Term && l.living[a.by] && time.Since(a.at) < l.plan.policy.Within {
					sum += a.n
				}
			}
			if sum > l.plan.policy.Failures {
				l.breaksLocked("%v: %s was allowed to put away %d, which makes %d in term %d", time.Since(l.began), by, n, sum, w.r.Term)
			}
			return
		}
	}
	l.breaksLocked("%v: %s has put away, although the circuit was not closed", time.Since(l.began), by)
}

// count gives the failures of a term between two times; sure: only those that are certainly of it,
// and of the living.
func (l *ledger) count(term int64, after, until time.Time, sure bool) (n int) {
	for _, f := range l.failures {
		if f.at.Before(after) || f.began.After(until) || f.first > term || f.last < term {
			continue
		}
		switch {
		case !sure:
			n += f.n
		case f.first == f.last && l.living[f.by] && !f.began.Before(after) && !f.at.After(until):
			n += f.sure
		}
	}
	return n
}

// checkOpening: a circuit with too many failures of living members is open soon. Time for it is a
// second, and what it takes to prove an age after bad weather.
func (l *ledger) checkOpening(now time.Time) {
	p := l.plan.policy
	soon := seenWithin + writeEvery + p.Within/10
	is, was := l.at(now), l.at(now.Add(-soon))
	if !is.Closed() || is.Term != was.Term {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.count(is.Term, now.Add(-p.Within+time.Millisecond), now.Add(-soon), true); n > p.Failures {
		l.breaksLocked("%v: %d failures in term %d within %v, and it is still closed", now.Sub(l.began), n, is.Term, p.Within)
	}
}

// judge looks at every change of the record: each has its reason.
func (l *ledger) judge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	incidents := map[string]bool{}
	for i := 1; i < len(l.writes); i++ {
		was, is := l.writes[i-1], l.writes[i]
		if is.r.Term == was.r.Term && is.r.State == breaker.HalfOpen && is.by == was.r.Prober {
			continue // it lives
		}
		if is.r.Term == was.r.Term && is.r.Closed() && was.r.Closed() && is.r.Decided[is.by] > 0 {
			continue // it allows something to be put away
		}
		if is.r.Term != was.r.Term+1 {
			l.breaksLocked("%v: term %d after %d", is.at.Sub(l.began), is.r.Term, was.r.Term)
		}
		if why := l.wrong(was, is); why != "" {
			l.breaksLocked("%v: %s made %s of %s (term %d): %s", is.at.Sub(l.began), is.by, is.r.State, was.r.State, is.r.Term, why)
		}
		if was.r.Closed() && !is.r.Closed() && incidents[is.r.Incident] {
			l.breaksLocked("%v: incident %s again", is.at.Sub(l.began), is.r.Incident)
		}
		incidents[is.r.Incident] = true
	}
}

// wrong says what is wrong with a change; nothing if it has its reason.
func (l *ledger) wrong(was, is write) string {
	how := l.outcomes[was.r.Term]
	switch {
	case is.by == "ann":
		return "" // an operator may
	case was.r.Closed() && is.r.State == breaker.Open:
		l.openings++
		return l.wrongOpening(was, is)
	case was.r.State == breaker.Open && is.r.State == breaker.HalfOpen:
		if wait, probes := l.plan.policy.ProbeWait(was.r); !probes || is.at.Sub(was.at) < wait || is.r.Prober != is.by {
			return fmt.Sprintf("after %v", is.at.Sub(was.at))
		}
		return ""
	case was.r.State == breaker.HalfOpen && is.r.State == breaker.HalfOpen:
		if is.at.Sub(was.at) < breaker.ProbeDeadline || is.r.Prober != is.by {
			return fmt.Sprintf("after %v", is.at.Sub(was.at))
		}
		return ""
	case was.r.State == breaker.HalfOpen && is.by != was.r.Prober:
		return "it is not the prober"
	case was.r.State == breaker.HalfOpen && is.r.Closed() && how == "probed true":
		return ""
	case was.r.State == breaker.HalfOpen && is.r.State == breaker.Open && !is.r.Untried && how == "probed false":
		return ""
	case was.r.State == breaker.HalfOpen && is.r.State == breaker.Open && is.r.Untried && (how == "returned" || l.passes[was.r.Term] == ""):
		return ""
	}
	return "for no reason; the probe: " + how
}

// wrongOpening: more than so many failures of the term within the window, and for how long the news
// may have been on its way.
func (l *ledger) wrongOpening(was, is write) string {
	p := l.plan.policy
	late := seenWithin
	if l.plan.storms {
		late = max(2*time.Second, p.Within/5) + lateMost + seenWithin
	}
	if n := l.count(was.r.Term, is.at.Add(-p.Within-late), is.at, false); n <= p.Failures {
		return fmt.Sprintf("%d failures in the last %v", n, p.Within+late)
	}
	return ""
}

// view is one member's way to the store: in bad weather calls fail, answers are lost, and writes
// are made late.
type view struct {
	*memory.Store
	by     string
	ledger *ledger

	mu   sync.Mutex
	dice *rand.Rand // guarded by mu
	dead bool       // guarded by mu
}

func (l *ledger) view(by string, seed uint64) *view {
	return &view{Store: l.store, by: by, ledger: l, dice: rand.New(rand.NewPCG(seed, 3))}
}

func (v *view) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
}

type fate int

const (
	good fate = iota
	denied
	lost
	late
)

// draw takes its time and gives a call's fate.
func (v *view) draw() (fate, time.Duration) {
	storm := v.ledger.isStorm()
	v.mu.Lock()
	defer v.mu.Unlock()
	takes := time.Duration(v.dice.Int64N(int64(20 * time.Millisecond)))
	switch n := v.dice.IntN(10); {
	case v.dead:
		return denied, 0
	case !storm:
		return good, takes
	case n < 3:
		return denied, 10 * takes
	case n < 4:
		return lost, 10 * takes
	case n < 5:
		return late, 10 * takes
	default:
		return good, 10 * takes
	}
}

func (v *view) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	fate, takes := v.draw()
	if err := sleep.For(ctx, takes, nil); err != nil || fate != good {
		return nil, errDown
	}
	return v.Store.Entries(ctx, g, prefix)
}

func (v *view) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	return v.write(ctx, func(ctx context.Context) (processor.Entry, error) {
		return v.ledger.wrote(v.by, f, func() (processor.Entry, error) { return v.Store.Put(ctx, g, f) })
	})
}

func (v *view) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	_, err := v.write(ctx, func(ctx context.Context) (processor.Entry, error) { return f, v.Store.Remove(ctx, g, f) })
	return err
}

func (v *view) write(ctx context.Context, write func(context.Context) (processor.Entry, error)) (processor.Entry, error) {
	fate, takes := v.draw()
	if sleep.For(ctx, takes, nil) != nil || fate == denied {
		return processor.Entry{}, errDown
	}
	if fate == late {
		after := lateMost * takes / (200 * time.Millisecond)
		time.AfterFunc(after, func() { _, _ = write(context.WithoutCancel(ctx)) })
		return processor.Entry{}, errDown
	}
	f, err := write(ctx)
	if err == nil && fate == lost {
		err = errDown
	}
	return f, err
}

// watchedView can be watched; in bad weather not for long.
type watchedView struct{ *view }

func (v watchedView) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		defer cancel()
		for sleep.For(ctx, time.Second, nil) == nil && !v.ledger.isStorm() {
			continue
		}
	})
	return v.Store.Watch(ctx, g, ready, changed)
}
