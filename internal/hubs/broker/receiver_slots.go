package broker

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// slots is where the receivers of this node sit.
//
// They are let in one at a time for each slot, and a newcomer keeps its turn until all
// whom it evicts have been notified. So when it begins to read, nobody before it still does:
// also not one whom its predecessor evicted a moment ago and who is slow to go.
//
// On one machine that is all. Where a yard has several nodes the rule is applied to one entry of the
// store for each slot, and this is what the node knows of its own receivers; see sharing.
type slots struct {
	seats prometheus.Gauge
	// shared is nil on one machine.
	shared *sharing

	mu sync.Mutex
	// all holds those that somebody has or wants. Guarded by mu.
	all map[slotID]*slot
}

// slotID names a slot by the hub's storage, not by its name: a hub created anew has
// nobody of the old one.
type slotID struct{ log, group, partition string }

type slot struct {
	// turn has room for the one who is being let in.
	turn chan struct{}
	// coming is how many have the turn or wait for it. Guarded by slots.mu.
	coming int
	// seated are at most MaxReceivers. Guarded by slots.mu.
	seated []*Receiver
	// entry is the newest that is known of the slot where it is shared, as of revision. Guarded by
	// slots.mu.
	entry    slotEntry
	revision meta.Revision
}

// take lets a receiver in, or says why not. Whom it evicts has been notified when it returns.
func (ps *slots) take(ctx context.Context, r *Receiver) error {
	if ps.shared != nil {
		return ps.shared.take(ctx, r)
	}
	p, leave, err := ps.enter(ctx, r.at)
	if err != nil {
		return err
	}
	defer leave()
	evicted, err := ps.seat(p, r)
	for _, old := range evicted {
		if old.evict != nil {
			old.evict(old.claim.evictedBy(r.claim))
		}
	}
	return err
}

// disconnect evicts all who have an epoch, in favour of nobody.
func (ps *slots) disconnect(ctx context.Context, at slotID) (int, error) {
	if ps.shared != nil {
		return ps.shared.disconnect(ctx, at)
	}
	p, leave, err := ps.enter(ctx, at)
	if err != nil {
		return 0, err
	}
	defer leave()
	ps.mu.Lock()
	var evicted []*Receiver
	for _, r := range slices.Clone(p.seated) {
		if r.claim.epoch != nil {
			evicted = append(evicted, r)
			ps.unseatLocked(p, r)
		}
	}
	ps.mu.Unlock()
	for _, old := range evicted {
		if old.evict != nil {
			old.evict(old.claim.evictedBy(claim{operator, old.claim.epoch}))
		}
	}
	return len(evicted), nil
}

// enter waits for the turn at a slot, which leave gives back.
func (ps *slots) enter(ctx context.Context, at slotID) (p *slot, leave func(), err error) {
	ps.mu.Lock()
	p = ps.all[at]
	if p == nil {
		p = &slot{turn: make(chan struct{}, 1)}
		ps.all[at] = p
	}
	p.coming++
	ps.mu.Unlock()
	gone := func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		p.coming--
		ps.tidyLocked(at, p)
	}
	select {
	case p.turn <- struct{}{}:
		return p, func() { <-p.turn; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, nil, context.Cause(ctx)
	}
}

// tidyLocked forgets a slot that nobody has or wants.
func (ps *slots) tidyLocked(at slotID, p *slot) {
	if p.coming == 0 && len(p.seated) == 0 && ps.all[at] == p {
		delete(ps.all, at)
	}
}

// seat applies the rule, in one step. It gives back who has to be notified.
func (ps *slots) seat(p *slot, r *Receiver) ([]*Receiver, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	present := make([]claim, len(p.seated))
	for i, old := range p.seated {
		present[i] = old.claim
	}
	evict, err := admit(present, r.claim)
	if err != nil {
		return nil, err
	}
	evicted := make([]*Receiver, len(evict))
	for i, at := range evict {
		evicted[i] = p.seated[at]
	}
	for _, old := range evicted {
		ps.unseatLocked(p, old)
	}
	ps.seatLocked(p, r)
	return evicted, nil
}

func (ps *slots) seatLocked(p *slot, r *Receiver) {
	p.seated = append(p.seated, r)
	r.seated = true
	ps.seats.Inc()
}

func (ps *slots) unseatLocked(p *slot, r *Receiver) {
	p.seated = slices.DeleteFunc(p.seated, func(other *Receiver) bool { return other == r })
	r.seated = false
	ps.seats.Dec()
}

func (ps *slots) free(r *Receiver) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !r.seated {
		return
	}
	p := ps.all[r.at]
	ps.unseatLocked(p, r)
	if r.shared != nil {
		r.shared.forgetLocked(r, 0)
	}
	ps.tidyLocked(r.at, p)
}

// expel evicts a receiver of a shared slot. It is silent when this returns, whoever was first to
// evict it.
func (ps *slots) expel(r *Receiver, why *EvictedError) {
	ps.mu.Lock()
	p, first := ps.all[r.at], r.seated
	if first {
		ps.unseatLocked(p, r)
	}
	ps.mu.Unlock()
	if !first {
		<-r.gone
		return
	}
	if r.evict != nil {
		r.evict(why)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	r.shared.forgetLocked(r, leavingPause)
	ps.tidyLocked(r.at, p)
}
