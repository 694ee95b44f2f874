package groups

import (
	"context"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// group is one that is loaded.
type group struct {
	coordinator *Coordinator
	id          string
	// account is who had it loaded; empty: nobody is counted for it.
	account string
	// visiting: it is loaded for an operator, at whichever node it is.
	visiting bool
	// loaded is closed when it is, or when that has failed: failed says why, and is not changed after.
	loaded chan struct{}
	failed error

	// Guarded by the coordinator's lock: when something is due, what its members take and for which account that is
	// counted, whether nobody is in it and nothing of it is under way, and when somebody last asked for it.
	due     time.Time
	bytes   int
	payer   string
	resting bool
	used    time.Time

	mu sync.Mutex
	// kind is the group itself. Guarded by mu, as is all that follows.
	kind kind
	// over is why the group was given up; nil: it was not.
	over error
	// ticket is the last that was given out, and waiting who waits for which.
	ticket  classic.Ticket
	waiting map[classic.Ticket]chan classic.Answer
	writes
}

// writes is what of a group is on its way to the store; guarded by the group's lock.
type writes struct {
	// entry is what was last written, under revision; zero: nothing was ever.
	entry    entry
	revision meta.Revision
	// wanted, tried and saved count changes of the group: which there are, which were last written with
	// whatever success, and which are durable.
	wanted, tried, saved uint64
	// parked are answers that follow the next write, and commits what that is to have in it.
	parked  []classic.Answer
	commits []*commit
	// writing: a goroutine does so.
	writing bool
	idle    chan struct{} // closed when it does not any more
}

func newGroup(c *Coordinator, id, account string) *group {
	return &group{coordinator: c, id: id, account: account, loaded: make(chan struct{}), used: time.Now(), waiting: make(map[classic.Ticket]chan classic.Answer)}
}

// exists: somebody has made it, be it only in memory.
func (g *group) exists() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.revision != 0 || !g.kind.Idle()
}

// unused: nobody has made it. Then it is given up: who asks for groups that there are not shall not fill the memory
// with them.
func (g *group) unused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revision != 0 || !g.kind.Idle() || g.writing {
		return false
	}
	g.giveUpLocked(errUnused)
	return true
}

// ask brings about an event whose answer may come later, and waits for it. Where the client's patience ends
// first, its request is abandoned.
func (g *group) ask(ctx context.Context, event func(now time.Time, t classic.Ticket) (classic.Effect, error)) (classic.Answer, error) {
	g.mu.Lock()
	if err := g.lostLocked(); err != nil {
		defer g.mu.Unlock()
		return classic.Answer{}, err
	}
	g.ticket++
	ticket, answer := g.ticket, make(chan classic.Answer, 1)
	effect, err := event(time.Now(), ticket)
	if err != nil {
		g.mu.Unlock()
		return classic.Answer{}, err
	}
	g.waiting[ticket] = answer
	g.applyLocked(effect)
	g.mu.Unlock()
	select {
	case a := <-answer:
		return a, a.Err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, ticket)
	if k, ok := g.kind.(classicKind); ok && g.over == nil {
		g.applyLocked(k.Abandon(time.Now(), ticket))
	}
	return classic.Answer{}, ErrStopping
}

// lostLocked is why the group is not this node's any more; nil: it is. That is asked right before each event: not all of
// them are stored, and only those that are would be refused there.
func (g *group) lostLocked() error {
	if g.over == nil && !g.visiting && !g.coordinator.cfg.Mine(g.id) {
		g.giveUpLocked(ErrNotCoordinator)
	}
	return g.over
}

// do brings about an event that is answered at once.
func (g *group) do(event func(now time.Time) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.lostLocked(); err != nil {
		return err
	}
	err := event(time.Now())
	g.noteLocked()
	return err
}

// applyLocked does what an event has brought about. Answers wait for the store where the group was changed, also
// those of later events: nobody hears of a generation that could be lost.
func (g *group) applyLocked(e classic.Effect) {
	if e.Save {
		g.wanted++
		g.coordinator.metrics.rebalances.Inc()
	}
	if g.wanted > g.saved {
		g.parked = append(g.parked, e.Answers...)
	} else {
		g.answerLocked(e.Answers, nil)
	}
	g.writeLocked()
	g.noteLocked()
}

// answerLocked gives answers to who waits for them; instead of them an error, if there is one.
func (g *group) answerLocked(all []classic.Answer, err error) {
	for _, a := range all {
		if err != nil {
			a = classic.Answer{Ticket: a.Ticket, Err: err}
		}
		if waiting := g.waiting[a.Ticket]; waiting != nil {
			waiting <- a // it has room for one, and there is no second
			delete(g.waiting, a.Ticket)
		}
	}
}

// noteLocked tells the coordinator how the group is.
func (g *group) noteLocked() {
	if g.over == nil {
		g.coordinator.note(g, g.kind.Next(), g.payerLocked(), g.kind.Bytes(), g.kind.Absent() && !g.writing)
	}
}

// payerLocked is the account that the group's members are counted for: that of who has made it, whoever had it loaded.
func (g *group) payerLocked() string {
	if g.revision != 0 {
		return g.entry.By
	}
	return g.account
}

// growLocked refuses what would have its members take more than there is room for.
func (g *group) growLocked(bytes int) error { return g.coordinator.grow(g.payerLocked(), bytes) }

// tick does what is due.
func (g *group) tick(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lostLocked() == nil {
		g.applyLocked(g.kind.tick(now))
	}
}

// giveUp ends the group at this node: whoever waits hears why.
func (g *group) giveUp(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.giveUpLocked(why)
}

func (g *group) giveUpLocked(why error) {
	if g.over != nil {
		return
	}
	g.over = why
	for ticket, waiting := range g.waiting {
		waiting <- classic.Answer{Ticket: ticket, Err: why}
	}
	clear(g.waiting)
	for _, c := range g.commits {
		c.end(why)
	}
	g.parked, g.commits = nil, nil
	g.coordinator.forget(g)
}

// may judges rights: those to the hubs that somebody subscribes to, and those of the group.
type may func(hub string) bool

func (m may) all(hubs ...[]string) error {
	for _, some := range hubs {
		for _, hub := range some {
			if !m(hub) {
				return ErrRights
			}
		}
	}
	return nil
}

// namespace is what a right to the namespace is asked by, as if that were a hub.
const namespace = ""

// Join has a client be, or stay, in a group. It waits until the next generation begins. The client needs a right
// to all hubs that it subscribes to, to those of the other members, whom it disturbs, and to those in which the group
// has offsets, which it would go on from. Members that are no consumers name no hubs: they need one to the namespace.
func (c *Coordinator) Join(ctx context.Context, id string, r classic.Join, right func(hub string) bool) (classic.Joined, error) {
	topics, err := r.Topics()
	if err != nil {
		return classic.Joined{}, err
	}
	if r.Type != member.ConsumerProtocol {
		topics = []string{namespace}
	}
	if err := may(right).all(topics); err != nil {
		return classic.Joined{}, err
	}
	var a classic.Answer
	err = c.findOrMake(ctx, id, func(g *group) (err error) {
		a, err = g.ask(ctx, func(now time.Time, t classic.Ticket) (classic.Effect, error) {
			if err := may(right).all(g.kind.Topics(), g.hubsLocked()); err != nil {
				return classic.Effect{}, err
			}
			k, err := g.classicLocked(true)
			if err != nil {
				return classic.Effect{}, err
			}
			if err := may(right).all(concerns(k, nil)); err != nil {
				return classic.Effect{}, err
			}
			if err := g.growLocked(classic.JoinGrowth(k, r)); err != nil {
				return classic.Effect{}, err
			}
			effect := k.Join(now, t, r)
			if !k.Idle() {
				g.kind = classicKind{k}
			}
			return effect, nil
		})
		return err
	})
	return a.Join, err
}

// Sync gives a member its assignment. It waits until the leader has assigned.
func (c *Coordinator) Sync(ctx context.Context, id string, r classic.Sync, right func(hub string) bool) (classic.Synced, error) {
	g, err := c.joined(ctx, id)
	if err != nil {
		return classic.Synced{}, err
	}
	a, err := g.ask(ctx, func(now time.Time, t classic.Ticket) (classic.Effect, error) {
		k, err := g.ofLocked(r.Member, right)
		if err != nil {
			return classic.Effect{}, err
		}
		if err := g.growLocked(classic.SyncGrowth(k, r)); err != nil {
			return classic.Effect{}, err
		}
		return k.Sync(now, t, r), nil
	})
	return a.Sync, err
}

// Heartbeat notes that a member is there.
func (c *Coordinator) Heartbeat(ctx context.Context, id, member, instance string, generation int32, right func(hub string) bool) error {
	g, err := c.joined(ctx, id)
	if err != nil {
		return err
	}
	return g.do(func(now time.Time) error {
		k, err := g.ofLocked(member, right)
		if err != nil {
			return err
		}
		return k.Heartbeat(now, member, instance, generation)
	})
}

// Leave takes members out of a group. It answers for each of them once that is durable.
func (c *Coordinator) Leave(ctx context.Context, id string, all []classic.Leaver, right func(hub string) bool) ([]error, error) {
	g, err := c.joined(ctx, id)
	if err != nil {
		return nil, err
	}
	var each []error
	_, err = g.ask(ctx, func(now time.Time, t classic.Ticket) (classic.Effect, error) {
		k, err := g.classicLocked(false)
		if err != nil {
			return classic.Effect{}, err
		}
		for _, l := range all {
			topics := k.TopicsOf(l.Member)
			if l.Member == "" { // an operator, who names the instance alone
				topics = k.Topics()
			}
			if err := may(right).all(concerns(k, topics)); err != nil {
				return classic.Effect{}, err
			}
		}
		var effect classic.Effect
		each, effect = k.Leave(now, all)
		effect.Answers = append(effect.Answers, classic.Answer{Ticket: t})
		return effect, nil
	})
	return each, err
}

// ofLocked gives the group for one of its members, which still needs its rights.
func (g *group) ofLocked(id string, right func(hub string) bool) (*classic.Group, error) {
	k, err := g.classicLocked(false)
	if err != nil {
		return nil, err
	}
	return k, may(right).all(concerns(k, k.TopicsOf(id)))
}

// concerns are what rights are needed to for somebody who subscribes to topics in a group: in one that is not of
// consumers nobody does. Nobody is disturbed in one in which nobody is.
func concerns(k *classic.Group, topics []string) []string {
	if k.State() != classic.Empty && k.Type() != member.ConsumerProtocol {
		return []string{namespace}
	}
	return topics
}
