package broker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// What a node does about its slots by itself: it follows their entries, removes what is gone, and
// after a break looks what it still has.

const (
	// tidyPause is the wait after the store has failed, reviewInterval how often receivers that are
	// paused are looked at.
	tidyPause      = time.Second
	reviewInterval = time.Second
	// leavingPause is how long one who was evicted, and is silent, stays in the entry: its removal is a
	// write of its own, with which that of the next who takes the slot would collide. Whoever comes
	// meanwhile asks its node once more, and has the answer at once.
	leavingPause = 200 * time.Millisecond
	// lastTidyTimeout bounds what is removed at the end.
	lastTidyTimeout = 2 * time.Second
)

// run does all that until ctx ends.
func (s *sharing) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() {
		err := mirror.Follow(ctx, s.follow, func(err error) {
			s.log.Warn("the watch of receivers' slots was lost, beginning anew", "error", err)
		})
		if err != nil {
			s.log.Error("slots of receivers are not followed any more", "error", err)
		}
	})
	all.Go(func() { s.tidyAll(ctx) })
	all.Go(func() { s.reviewAll(ctx) })
	all.Wait()
}

// follow is one watch of all slots.
func (s *sharing) follow(ctx context.Context, begun func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := s.store.Watch(ctx, slotsPrefix)
	if err != nil {
		return err
	}
	for {
		changes, err := watch.Next()
		if err != nil {
			return err
		}
		begun()
		for _, change := range changes {
			s.see(change)
		}
	}
}

// see takes in what the watch reports. A deleted entry says nothing of receivers: the hub was deleted,
// and they find out by reading.
func (s *sharing) see(change meta.Change) {
	at, ok := slotOfKey(change.Key)
	if !ok || change.Deleted {
		return
	}
	entry, err := decodeSlot(change.Entry)
	if err != nil {
		s.log.Warn("a slot cannot be read, and is passed over", "error", err)
		return
	}
	s.slots.mu.Lock()
	p := s.slots.all[at]
	switch next, changed := entry.without(s.leftLocked); {
	case !changed:
	case len(next.Holders) != len(entry.Holders):
		s.untidyLocked(at, 0)
	default:
		s.untidyLocked(at, leavingPause)
	}
	s.slots.mu.Unlock()
	if p != nil {
		s.learn(p, change.Revision, entry)
	}
}

// leftLocked reports whether a holder was this node's and is gone.
func (s *sharing) leftLocked(h holder) bool {
	return h.Node == s.nodes.Self() && s.registered[h.ID] == nil
}

// settle notes that a receiver was written into its slot at a revision.
func (s *sharing) settle(p *slot, r *Receiver, term uint64, revision meta.Revision, entry slotEntry) {
	r.term.Store(term)
	s.slots.mu.Lock()
	r.revision = revision
	s.slots.mu.Unlock()
	s.learn(p, revision, entry)
}

// learn takes in what a slot's entry is at a revision, from whichever side that comes, and evicts
// whoever of this node has lost the slot by then. They are silent when it returns. One without epoch
// that was only taken for dead is left to the next review.
func (s *sharing) learn(p *slot, revision meta.Revision, entry slotEntry) {
	s.slots.mu.Lock()
	if revision > p.revision {
		p.revision, p.entry = revision, entry
	}
	var robbed []*Receiver
	for _, r := range p.seated {
		if _, has := p.entry.holder(r.id); has || r.revision == 0 || r.revision >= p.revision {
			continue
		}
		if _, leaving := findHolder(p.entry.Leaving, r.id); leaving || r.claim.epoch != nil {
			robbed = append(robbed, r)
		} else {
			r.term.Store(0)
		}
	}
	entry = p.entry
	s.slots.mu.Unlock()
	for _, r := range robbed {
		s.slots.expel(r, entry.evictionOf(r))
	}
}

// forgetLocked ends what is known of a receiver that gives nothing more to its client. The entry is told
// after a pause.
func (s *sharing) forgetLocked(r *Receiver, pause time.Duration) {
	delete(s.registered, r.id)
	delete(s.paused, r)
	s.untidyLocked(r.at, pause)
	close(r.gone)
}

// untidyLocked has a slot tended to after a pause, unless it is to be before.
func (s *sharing) untidyLocked(at slotID, pause time.Duration) {
	due := time.Now().Add(pause)
	if before, there := s.untidy[at]; !there || due.Before(before) {
		s.untidy[at] = due
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// tidyAll removes from the entries what is gone of this node, until ctx ends and once more then.
func (s *sharing) tidyAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			timer.Reset(s.tidy(ctx, time.Now()))
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTidyTimeout)
	defer cancel()
	s.tidy(last, time.Now().Add(leavingPause+tidyPause)) // all of them
}

// tidy tends to the slots that are due, and says when the next will be. What fails is due again after a
// pause.
func (s *sharing) tidy(ctx context.Context, now time.Time) (wait time.Duration) {
	for _, at := range s.due(now) {
		if s.tidyOne(ctx, at) != nil {
			s.slots.mu.Lock()
			s.untidyLocked(at, tidyPause)
			s.slots.mu.Unlock()
		}
	}
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	wait = time.Hour // or until one is added
	for _, due := range s.untidy {
		wait = min(wait, time.Until(due))
	}
	return wait
}

// due takes out the slots that are to be tended to by now.
func (s *sharing) due(now time.Time) (all []slotID) {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	for at, due := range s.untidy {
		if !due.After(now) {
			all = append(all, at)
			delete(s.untidy, at)
		}
	}
	return all
}

func (s *sharing) tidyOne(ctx context.Context, at slotID) error {
	return mirror.Uncontested(ctx, func() error {
		there, revision, err := s.read(ctx, at)
		if err != nil {
			return err
		}
		s.slots.mu.Lock()
		next, changed := there.without(s.leftLocked)
		s.slots.mu.Unlock()
		if !changed {
			return nil
		}
		if next.empty() && s.abandoned(ctx, at) {
			return s.store.Delete(ctx, at.key(), revision)
		}
		_, err = s.write(ctx, at, revision, next)
		return err
	})
}

// Ready reports whether something may be given to the receiver's client now, which is asked right
// before. A receiver that has an epoch is paused while its node cannot show the others that it
// lives: another may have its slot without a word. Where it is false wake is called once it is true
// again; who loses the slot meanwhile is evicted instead. It does no I/O, and on one machine it is
// always true. It is not for Evict, or after Close.
func (r *Receiver) Ready(wake func()) bool {
	if r.shared == nil || r.claim.epoch == nil || r.shared.ready(r) {
		return true
	}
	r.slots.mu.Lock()
	if r.seated {
		r.shared.paused[r] = wake
	}
	r.slots.mu.Unlock()
	return false // also if it is by now: the next review calls wake
}

// ready: the slot was the receiver's in a term in which the node may act ever since.
func (s *sharing) ready(r *Receiver) bool {
	term, mayAct := s.nodes.Standing()
	return mayAct && r.term.Load() == term
}

// reviewAll looks, in each new term, which receivers still have their slots, until ctx ends.
func (s *sharing) reviewAll(ctx context.Context) {
	ticker := time.NewTicker(reviewInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		changed := s.nodes.Changed()
		s.review(ctx)
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// review confirms the slots that were taken in an earlier term, and wakes who is ready again.
func (s *sharing) review(ctx context.Context) {
	if term, mayAct := s.nodes.Standing(); mayAct {
		for _, at := range s.unconfirmed(term) {
			if err := s.confirm(ctx, at, term); err != nil && ctx.Err() == nil {
				s.log.Warn("whether receivers still have their slots is not known yet; trying again", "log", at.log, "partition", at.partition, "error", err)
				break // with the next review
			}
		}
	}
	var awake []func()
	s.slots.mu.Lock()
	for r, wake := range s.paused {
		if s.ready(r) {
			awake = append(awake, wake)
			delete(s.paused, r)
		}
	}
	s.slots.mu.Unlock()
	for _, wake := range awake {
		wake()
	}
}

// unconfirmed gives the slots of receivers that were written in another term.
func (s *sharing) unconfirmed(term uint64) []slotID {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	found := make(map[slotID]bool)
	for _, r := range s.registered {
		if r.revision != 0 && r.seated && r.term.Load() != term {
			found[r.at] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// confirm writes that this node's receivers have a slot in a new term, those that still do. The
// others are evicted; one without epoch comes back where the rule allows it.
func (s *sharing) confirm(ctx context.Context, at slotID, term uint64) error {
	s.slots.mu.Lock()
	p := s.slots.all[at]
	s.slots.mu.Unlock()
	if p == nil {
		return nil // all have closed
	}
	return mirror.Uncontested(ctx, func() error {
		there, revision, err := s.read(ctx, at)
		if err != nil {
			return err
		}
		mine := s.seatedAt(p)
		next := there.renew(s.nodes.Self(), term)
		for _, r := range mine {
			if _, has := next.holder(r.id); !has && r.claim.epoch == nil {
				me := holder{ID: r.id, Node: s.nodes.Self(), Term: term, Name: r.claim.name}
				next, _ = next.admit(me, s.gone) // or it stays without
			}
		}
		if revision, err = s.write(ctx, at, revision, next); err != nil {
			return err
		}
		for _, r := range mine {
			if _, has := next.holder(r.id); has {
				r.term.Store(term)
			} else {
				s.slots.expel(r, next.evictionOf(r))
			}
		}
		s.learn(p, revision, next)
		return nil
	})
}

// seatedAt gives the receivers of this node that were written into a slot.
func (s *sharing) seatedAt(p *slot) []*Receiver {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.seated), func(r *Receiver) bool { return r.revision == 0 })
}
