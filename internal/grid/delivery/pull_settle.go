package delivery

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
)

// Settlement is what a puller does with what it holds.
type Settlement int

const (
	Acknowledge Settlement = iota
	Release                // available again, after delay
	Reject                 // dead-lettered or dropped
	Renew                  // the lock begins anew
)

// Settled is how it went with one token: nil, ErrLockLost or ErrToken.
type Settled struct {
	Token string
	Err   error
}

// Settle settles tokens; what it says is durable or will come again. An error is that of the
// storage: the locks are as they were then.
func (s *Service) Settle(ctx context.Context, subscription string, how Settlement, delay time.Duration, tokens []string) ([]Settled, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	if !l.terms.pull {
		l.mu.Unlock()
		return nil, ErrNotPull
	}
	now := time.Now()
	l.memory.lapsed = append(l.memory.lapsed, l.pull.lapse(now)...)
	settled, holds := l.pull.unlock(l.id, tokens, how == Renew, now.Add(l.terms.lock))
	st := &settling{batch{lane: l, terms: l.terms}, holds}
	l.mu.Unlock()
	switch how {
	case Acknowledge:
		st.tally.delivered = int64(len(holds))
		st.finish(len(holds))
	case Release:
		err = st.release(ctx, delay)
	case Reject:
		err = st.bury(ctx, retry.BadRequest, retry.ReasonRefused)
	case Renew: // unlock has done it
	}
	st.end()
	if err != nil {
		return nil, err
	}
	return settled, nil
}

// GiveBack releases what was handed out and reached nobody, rather than let it wait for its lock to
// end. It is best effort: locks do end.
func (s *Service) GiveBack(ctx context.Context, subscription string, tokens []string) error {
	_, err := s.Settle(ctx, subscription, Release, 0, tokens)
	return err
}

// settling is one call that ends locks: a batch of what was held, of which holds is not settled
// yet.
type settling struct {
	batch
	holds []hold
}

// finish is the end of the first n.
func (st *settling) finish(n int) {
	for _, h := range st.holds[:n] {
		st.batch.finish(h.item)
	}
	st.holds = st.holds[n:]
}

// end gives the lane what has come of it. What could not be settled is locked as it was, unless the
// subscription has gone.
func (st *settling) end() {
	l := st.lane
	l.mu.Lock()
	for _, h := range st.holds {
		switch {
		case l.gone:
			st.back = append(st.back, h.item)
		case l.moved: // the next holder hands it out again
			l.memory.letGo(h.item)
		default:
			l.pull.hold(h)
		}
	}
	now := time.Now()
	st.settleLocked(now)
	l.pokeLocked(now)
	l.mu.Unlock()
	notifyDone(st.late)
}

// release makes events available again; those that were delivered too often are put away.
func (st *settling) release(ctx context.Context, delay time.Duration) error {
	var spent, rest []hold
	for _, h := range st.holds {
		if h.item.Attempts+1 >= st.terms.maxDeliveries {
			spent = append(spent, h)
		} else {
			rest = append(rest, h)
		}
	}
	st.holds = rest
	err := st.storeOnce(func(ps []pending.Delivery) error {
		stamp(ps, retry.Aborted, "")
		if delay > 0 {
			return st.lane.holding.logs.Put(ctx, delay, ps)
		}
		return st.lane.shelve(ctx, ps)
	})
	left := st.holds
	if st.holds = spent; err == nil {
		err = st.bury(ctx, retry.Aborted, retry.ReasonAttempts)
	}
	st.holds = append(st.holds, left...)
	return err
}

// bury puts events away as dead letters, or drops them.
func (st *settling) bury(ctx context.Context, o retry.Outcome, reason string) error {
	n := len(st.holds)
	if !st.terms.deadTarget {
		st.tally.count(dropped, reason, n)
		for _, h := range st.holds {
			st.tally.drop(reason, h.item)
		}
		st.finish(n)
		return nil
	}
	err := st.storeOnce(func(ps []pending.Delivery) error {
		stamp(ps, o, reason)
		return st.lane.s.cfg.Dead.Put(ctx, st.terms.sub, ps)
	})
	st.tally.count(buried, reason, n-len(st.holds))
	return err
}

// stamp writes what became of copies: the items are as they were if they cannot be stored.
func stamp(deliveries []pending.Delivery, o retry.Outcome, reason string) {
	for i := range deliveries {
		deliveries[i].Note(pending.Attempt{At: time.Now(), Outcome: o})
		deliveries[i].Attempts++
		deliveries[i].LastOutcome, deliveries[i].LastStatus, deliveries[i].Reason = o, 0, reason
	}
}

// storeOnce puts what is held somewhere durable. It does not try again: the caller learns what went
// wrong.
func (st *settling) storeOnce(put func([]pending.Delivery) error) error {
	for portion, deliveries := range portions(st.holds, func(h hold) pending.Delivery { return h.item.Delivery }) {
		if err := put(deliveries); err != nil {
			return err
		}
		st.finish(len(portion))
	}
	return nil
}

// lapse is the fate of what was held for too long: back in the parked log, or, after too many
// deliveries, away.
func (b *batch) lapse() {
	var spent, rest []*item
	for _, it := range b.items {
		it.Attempts++
		it.LastOutcome = retry.TimedOut
		it.Note(pending.Attempt{At: time.Now(), Outcome: retry.TimedOut})
		if it.Attempts >= b.terms.maxDeliveries && b.terms.pull {
			spent = append(spent, it)
		} else {
			rest = append(rest, it)
		}
	}
	b.tally.count(failed, string(retry.TimedOut), len(b.items))
	if len(spent) > 0 {
		b.giveUp(spent, retry.ReasonAttempts)
	}
	b.back = append(b.back, b.store(rest, "put events back into a parked log", func(ps []pending.Delivery) error {
		return b.lane.shelve(b.shift.keeping, ps)
	})...)
}
