package circuit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// request is of somebody who wants to put events away.
type request struct {
	term    int64 // of the calls that failed, or AnyTerm
	events  int
	samples []breaker.Sample
	answer  chan permission // has room for one
}

// permission is for the first so many events of a request.
type permission struct {
	events int
	term   int64
	err    error
}

// queue are the requests that wait for an answer.
type queue struct {
	mu    sync.Mutex
	list  []*request // guarded by mu
	ended bool       // guarded by mu: nobody answers any more
}

var errEnded = errors.New("this instance takes no more part in the circuit")

func (q *queue) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		r.answer <- permission{err: errEnded}
		return
	}
	q.list = append(q.list, r)
}

// remove takes a request back, if it is not being decided on.
func (q *queue) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.list {
		if other == r {
			q.list = append(q.list[:i:i], q.list[i+1:]...)
			return
		}
	}
}

func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// giveBack has requests decided on later.
func (q *queue) giveBack(list []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(list, q.list...)
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) == 0
}

// end answers all, now and later.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	answer(q.list, permission{err: errEnded})
	q.list = nil
}

func answer(list []*request, p permission) {
	for _, r := range list {
		r.answer <- p
	}
}

// MayPutAway asks for leave to put events away that have failed, one at least, and says how many of
// them, the first, may be: fewer than were asked for if the circuit is not closed (any more). Over
// all instances no more than the policy's failures are allowed within its time, and the one that is
// too many opens the circuit.
//
// Run decides, for all who have asked meanwhile together, by a round of the store: it reads the
// record, then all tallies, and announces in the record what it allows, on condition that the
// record is still the same. So all decisions of all instances have an order, and each knows those
// before it. An error means that the store could not be asked, and nothing was allowed.
//
// Called is the term in which the calls were made: once the circuit was closed anew, what failed before says
// nothing, and nothing is allowed for it, nor counted. AnyTerm is of events that were not called.
//
// Events that are allowed are counted as failures, unless the policy counts attempts. Leave is for
// the term in which the circuit was closed then, as Stands tells.
func (m *Member) MayPutAway(ctx context.Context, called int64, events int, s ...breaker.Sample) (allowed int, term int64, err error) {
	r := &request{term: called, events: events, samples: s, answer: make(chan permission, 1)}
	m.queue.add(r)
	m.wakeRun()
	select {
	case p := <-r.answer:
		return p.events, p.term, p.err
	case <-ctx.Done():
		m.queue.remove(r)
		return 0, 0, context.Cause(ctx)
	}
}

// Stands tells whether leave that was given in a term is still good: while the circuit is closed as
// it was then, and when too many failures have opened it since, as those were not too many. What an
// operator does puts an end to it.
func (m *Member) Stands(term int64) bool {
	is, _ := m.present()
	return is.Term == term && is.Closed() || is.Term == term+1 && is.State == breaker.Open
}

// AnyTerm is that of events that go back to no call.
const AnyTerm = -1

const (
	// maxLagging is how many instances may have decided something that their tallies do not show
	// yet, so that the record stays small.
	maxLagging = 32
	// maxRewrite is how often an instance with failures in the window writes its tally again,
	// however long the window is: so long others wait who do not know how old it is.
	maxRewrite = 10 * time.Second
)

// permit decides on requests, by tallies that were read after the record in a version.
func (l *loop) permit(ctx context.Context, asked []*request, version processor.Version) error {
	m := l.m
	if err := m.enter(ctx); err != nil {
		answer(asked, permission{err: err})
		return err
	}
	defer m.leave()
	now := time.Now()
	record, present := m.present()
	if !record.Closed() {
		answer(asked, permission{})
		return nil
	}
	if asked = refuseEarlier(asked, record.Term); len(asked) == 0 {
		return nil
	}
	wanted := 0
	for _, r := range asked {
		wanted += r.events
	}
	if m.cfg.Policy.Failures < 0 {
		allow(asked, wanted, record.Term)
		return nil
	}
	lagging, decided := l.lagging(record, now)
	failures, counts := m.failures(now)+lagging, m.cfg.Policy.Counts(wanted)
	room := m.cfg.Policy.Room(failures, wanted)
	pessimistic := m.cfg.Policy.Room(failures+l.unproven(record.Term, now), wanted)
	switch {
	case present != version:
		l.again(asked)
		return nil
	case l.own.version == "" || l.own.written.Term != record.Term || len(decided) > maxLagging || pessimistic < room:
		m.queue.giveBack(asked) // there is soon more to know
		return nil
	}
	if room > 0 {
		decided[l.ownName()] = m.total() + int64(m.cfg.Policy.Counts(room))
		next := record
		next.Decided = decided
		if err := m.put(ctx, next); err != nil {
			return l.unsure(asked, err)
		}
		m.count(m.cfg.Policy.Counts(room), samplesOf(asked, room))
		asked = allow(asked, room, record.Term)
	}
	if room == wanted {
		return nil
	}
	next, open := m.opening(failures+counts, samplesOf(asked, wanted))
	if !open {
		answer(asked, permission{})
		return nil
	}
	if err := m.put(ctx, next); err != nil {
		return l.unsure(asked, err)
	}
	answer(asked, permission{})
	return nil
}

// refuseEarlier answers requests of earlier terms, and gives the others.
func refuseEarlier(asked []*request, term int64) (left []*request) {
	for _, r := range asked {
		if r.term != AnyTerm && r.term < term {
			r.answer <- permission{}
		} else {
			left = append(left, r)
		}
	}
	return left
}

// unsure is after a write that was not answered, or refused since somebody else was quicker: then
// it is all decided anew.
func (l *loop) unsure(asked []*request, err error) error {
	if errors.Is(err, processor.ErrConflict) {
		l.again(asked)
		return nil
	}
	answer(asked, permission{err: err})
	return fmt.Errorf("decide on what is put away by circuit %s: %w", l.m.cfg.Function, err)
}

// again has it all read and decided anew: somebody has changed the record.
func (l *loop) again(asked []*request) {
	l.m.queue.giveBack(asked)
	l.m.wakeRun()
}

// allow answers requests as far as there is room, and gives those that are left, with what is left
// of them. A request that is allowed in part is answered so.
func allow(asked []*request, room int, term int64) (left []*request) {
	for _, r := range asked {
		n := min(r.events, room)
		room -= n
		if n == 0 && r.events > 0 {
			left = append(left, r)
			continue
		}
		r.answer <- permission{events: n, term: term}
	}
	return left
}

func samplesOf(asked []*request, most int) (all []breaker.Sample) {
	for _, r := range asked {
		all = append(all, r.samples...)
	}
	return all[:min(most, len(all))]
}

// lagging counts what others have decided that their tallies do not show yet; decided is what is to
// be told further.
func (l *loop) lagging(record breaker.Record, now time.Time) (n int, decided map[string]int64) {
	decided = map[string]int64{}
	if l.m.unchanged(now) >= l.m.cfg.Policy.Within {
		return 0, decided
	}
	for name, total := range record.Decided {
		// One who has decided has a tally: if there is none it has left.
		s := l.seen[tallies(l.m.cfg.Function)+name]
		if name == l.ownName() || s == nil || total <= s.last.Total {
			continue
		}
		first, known := l.decided[name]
		if !known || first.total != total {
			first = decision{total, now}
			l.decided[name] = first
		}
		if now.Sub(first.at) < l.m.cfg.Policy.Within { // else it has died before it could write
			decided[name] = total
			n += int(min(total-s.last.Total, 1<<30))
		}
	}
	maps.DeleteFunc(l.decided, func(name string, _ decision) bool { _, lags := decided[name]; return !lags })
	return n, decided
}

// decision is how many failures an instance had when it decided, and when that was first seen.
type decision struct {
	total int64
	at    time.Time
}

// unproven counts failures of others whose age is not known, as if they were new. If their instance
// lives it writes them again soon; until then nothing is allowed that they might forbid.
func (l *loop) unproven(term int64, now time.Time) (n int) {
	within := l.m.cfg.Policy.Within
	for _, s := range l.seen {
		if s.unknown && s.version != "" && now.Sub(s.changed) < l.rewriteEvery()+2*l.m.cfg.Poll {
			n += breaker.Sum(term, within, breaker.Tally{}, []breaker.Seen{{Tally: s.last, At: s.changed}}, now)
		}
	}
	return n
}

// rewriteEvery is how often a tally with failures in the window is written again.
func (l *loop) rewriteEvery() time.Duration {
	return min(max(l.m.cfg.Policy.Within/10, writeEvery), maxRewrite)
}

// ownName is what Decided calls this instance.
func (l *loop) ownName() string { return strings.TrimPrefix(l.ownKey(), tallies(l.m.cfg.Function)) }

// failures are those within the window that are known here.
func (k *knowledge) failures(now time.Time) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failuresLocked(now)
}

// total is how many failures this instance has had in all.
func (k *knowledge) total() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.window.Total()
}

// goOn has this instance count on from where an earlier life of it has stopped.
func (k *knowledge) goOn(total int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.window.GoOn(total)
}

// unchanged is how long the record has been seen as it is.
func (k *knowledge) unchanged(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Sub(k.since)
}

// opening is the record with so many failures; false: they do not open it.
func (k *knowledge) opening(failures int, s []breaker.Sample) (breaker.Record, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.viewLocked(time.Now())
	v.Failures, v.Samples, v.Incident = failures, append(v.Samples[:len(v.Samples):len(v.Samples)], s...), rand.Text()
	return breaker.Decide(k.policy, v)
}
