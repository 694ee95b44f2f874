package broker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// sharing makes slots hold over all nodes of a yard. On one machine there is none.
//
// The receivers of a slot are one entry, which changes by compare-and-set. Who comes asks the rule,
// writes what follows from it, and then waits until the node of everyone who has to go confirms that
// nothing more goes to that client, or is seen dead. Only then does Receive return. A request to a
// node may be lost: it is sent again, and the node also sees by its watch that a receiver of its own
// has lost its slot.
//
// A node that cannot reach the store is seen dead in the end, and stops before (see cluster): its
// receivers that have an epoch are not Ready then. When it is back it looks for each of them: who
// still has the slot goes on once that is written under the node's new term, the others have been
// robbed. Receivers without epoch go on all the while: at worst there are more of them than allowed.
//
// A receiver is registered here before it is written and until it is gone. So whatever the store has
// of this node that is not registered is to be removed, be it that a receiver has closed or that a
// write came to light late.
type sharing struct {
	slots   *slots
	store   meta.Store
	nodes   *cluster.Nodes
	lookups *looks.Looks
	log     *slog.Logger
	// withdraw reports whether the hub of a slot was deleted while its first entry was written.
	withdraw func(ctx context.Context, log string) bool
	// abandoned reports whether the group of a slot does not exist any more.
	abandoned func(ctx context.Context, at slotID) bool

	// The following are guarded by slots.mu.

	// registered are the receivers of this node, by their id.
	registered map[string]*Receiver
	// untidy are slots whose entry has something of this node that is gone, and when that is removed.
	untidy map[slotID]time.Time
	// paused are receivers that are not ready, with what is to be called when they are.
	paused map[*Receiver]func()

	// wake has room for one sign that there is something untidy.
	wake chan struct{}
}

const (
	subjectEvict = "slots.evict"
	subjectCheck = "slots.check"
	// evictTimeout bounds one request to evict, evictPause is the wait before the next.
	evictTimeout = 2 * time.Second
	evictPause   = time.Second
	// maxAskedBytes bounds such a request: a slot has a handful of receivers.
	maxAskedBytes = 256 << 10
)

func newSharing(b *Broker, nodes *cluster.Nodes) *sharing {
	s := &sharing{
		slots: b.slots, store: b.meta, nodes: nodes, lookups: b.lookups, log: b.log,
		withdraw: func(ctx context.Context, log string) bool {
			h := b.hubs.byLog()[log]
			return h == nil || b.wasDeleted(ctx, h)
		},
		abandoned: func(ctx context.Context, at slotID) bool {
			_, err := b.meta.Get(ctx, groupKey(at.log, at.group))
			return errors.Is(err, meta.ErrNotFound) && !isDefaultGroup(at.group)
		},
		registered: make(map[string]*Receiver), untidy: make(map[slotID]time.Time), paused: make(map[*Receiver]func()),
		wake: make(chan struct{}, 1),
	}
	nodes.Handle(subjectEvict, s.handleEvict)
	nodes.Handle(subjectCheck, s.handleCheck)
	return s
}

// take lets a receiver in, or says why not. Whom it evicts is silent when it returns.
func (s *sharing) take(ctx context.Context, r *Receiver) error {
	p, leave, err := s.slots.enter(ctx, r.at)
	if err != nil {
		return err
	}
	defer leave()
	s.register(p, r)
	entry, err := s.claim(ctx, p, r)
	if err == nil {
		err = s.awaitLeaving(ctx, r.gone, entry.Leaving)
	}
	if err != nil {
		s.slots.free(r)
	}
	return err
}

func (s *sharing) register(p *slot, r *Receiver) {
	r.id, r.gone, r.shared = strings.ToLower(rand.Text()[:20]), make(chan struct{}), s
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	s.registered[r.id] = r
	s.slots.seatLocked(p, r)
}

// claim writes the receiver into the slot's entry, which it gives back.
func (s *sharing) claim(ctx context.Context, p *slot, r *Receiver) (entry slotEntry, err error) {
	var checked map[string]bool // who is gone, as their nodes say
	gone := func(h holder) bool { return checked[h.ID] || s.gone(h) }
	err = mirror.Uncontested(ctx, func() error {
		there, revision, err := s.read(ctx, r.at)
		if err != nil {
			return err
		}
		if s.landed(p, r, revision, there) {
			entry = there
			return nil
		}
		term, mayAct := s.nodes.Standing()
		if !mayAct {
			return fmt.Errorf("this node cannot show the others that it lives: %w", meta.ErrUnavailable)
		}
		me := holder{ID: r.id, Node: s.nodes.Self(), Term: term, Name: r.claim.name, Epoch: r.claim.epoch}
		next, refusal := there.admit(me, gone)
		if refusal != nil && checked == nil {
			if checked, err = s.check(ctx, r.at); err != nil {
				return err
			}
			return meta.ErrConflict // with what was read
		}
		if refusal != nil {
			return refusal
		}
		if revision, err = s.write(ctx, r.at, revision, next); err == nil {
			entry = next
			s.settle(p, r, term, revision, next)
		}
		return err
	})
	return entry, err
}

// landed reports whether an earlier write of the receiver has come to light, be it that it was evicted
// since then.
func (s *sharing) landed(p *slot, r *Receiver, revision meta.Revision, there slotEntry) bool {
	if h, ok := there.holder(r.id); ok {
		s.settle(p, r, h.Term, revision, there)
		return true
	}
	if h, ok := findHolder(there.Leaving, r.id); ok {
		s.slots.expel(r, h.evicted())
	}
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// read reads a slot's entry; zero if there is none.
func (s *sharing) read(ctx context.Context, at slotID) (slotEntry, meta.Revision, error) {
	e, err := s.store.Get(ctx, at.key())
	if errors.Is(err, meta.ErrNotFound) {
		return slotEntry{}, 0, nil
	}
	if err != nil {
		return slotEntry{}, 0, fmt.Errorf("read slot: %w", err)
	}
	entry, err := decodeSlot(e)
	return entry, e.Revision, err
}

// write stores a slot's entry. Where the outcome is unknown it is meta.ErrConflict once reads show
// what became of it.
func (s *sharing) write(ctx context.Context, at slotID, expected meta.Revision, entry slotEntry) (meta.Revision, error) {
	revision, err := s.store.CompareAndSet(ctx, at.key(), expected, encode(entry))
	if errors.Is(err, meta.ErrUncertain) && s.store.Fresh(ctx, slotKeys(at.log, at.group)) == nil {
		return 0, meta.ErrConflict
	}
	if err != nil {
		return 0, fmt.Errorf("write slot: %w", err)
	}
	if expected == 0 && s.withdraw(ctx, at.log) {
		if err := s.store.Delete(ctx, at.key(), revision); err != nil && !mirror.GoneOrChanged(err) {
			s.log.Warn("a slot of a deleted hub stays behind", "log", at.log, "error", err)
		}
	}
	return revision, nil
}

// gone reports whether a holder is gone for certain: it was this node's and has closed, or its node
// is dead.
func (s *sharing) gone(h holder) bool {
	if h.Node != s.nodes.Self() {
		return !s.nodes.AliveIn(h.Node, h.Term)
	}
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.registered[h.ID] == nil
}

// check finds out who of those that stand in a newcomer's way has closed by now: a node frees the
// slot of its client before the entry says so, and the entry may be stale.
func (s *sharing) check(ctx context.Context, at slotID) (gone map[string]bool, err error) {
	_, _ = s.lookups.Fresh(ctx, slotKeys(at.log, at.group)) // where that may not be, nodes are asked all the same
	there, _, err := s.read(ctx, at)
	if err != nil {
		return nil, err
	}
	gone = make(map[string]bool)
	for node, holders := range byNode(there.Holders) {
		if node == s.nodes.Self() {
			continue
		}
		left, err := s.ask(ctx, node, subjectCheck, holders)
		if err != nil {
			continue // then they count as being there
		}
		for _, h := range left {
			gone[h.ID] = true
		}
	}
	return gone, nil
}

// ask asks a node about receivers of its own, and gives those back that it answers with.
func (s *sharing) ask(ctx context.Context, node cluster.Node, subject string, holders []holder) (answer []holder, err error) {
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	body, err := s.nodes.Ask(ctx, node, subject, encode(holders))
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	return answer, err
}

func byNode(holders []holder) map[cluster.Node][]holder {
	byNode := make(map[cluster.Node][]holder)
	for _, h := range holders {
		byNode[h.Node] = append(byNode[h.Node], h)
	}
	return byNode
}

// handleCheck answers with those of the receivers asked for that are gone.
func (s *sharing) handleCheck(_ context.Context, r cluster.Request) ([]byte, error) {
	return s.handle(r, func(asked []holder) (gone []holder) {
		for _, h := range asked {
			if s.gone(h) {
				gone = append(gone, h)
			}
		}
		return gone
	})
}

// handleEvict answers when nothing more goes to the clients of those asked for.
func (s *sharing) handleEvict(_ context.Context, r cluster.Request) ([]byte, error) {
	return s.handle(r, func(asked []holder) []holder {
		for _, h := range asked {
			s.slots.mu.Lock()
			r := s.registered[h.ID]
			s.slots.mu.Unlock()
			if r != nil {
				s.slots.expel(r, h.evicted())
			}
		}
		return nil
	})
}

func (s *sharing) handle(r cluster.Request, answer func([]holder) []holder) ([]byte, error) {
	if len(r.Body) > maxAskedBytes {
		return nil, fmt.Errorf("a request of %d bytes: at most %d are allowed", len(r.Body), maxAskedBytes)
	}
	var asked []holder
	if err := json.Unmarshal(r.Body, &asked); err != nil {
		return nil, err
	}
	return encode(answer(asked)), nil
}

// awaitLeaving sees to it that those who have lost the slot are silent, and returns when that is
// so, or when the newcomer has been evicted itself: who did that waits for all of them, too.
func (s *sharing) awaitLeaving(ctx context.Context, evicted <-chan struct{}, leaving []holder) error {
	var asking sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for node, holders := range byNode(leaving) {
		asking.Go(func() {
			if err := s.evictAt(ctx, evicted, node, holders); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
	}
	asking.Wait()
	return failed
}

func (s *sharing) evictAt(ctx context.Context, evicted <-chan struct{}, node cluster.Node, holders []holder) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		changed := s.nodes.Changed()
		if holders = remaining(holders, s.gone); len(holders) == 0 {
			return nil
		}
		if s.askUnless(ctx, changed, node, holders) == nil {
			return nil
		}
		pause.Reset(evictPause)
		select {
		case <-pause.C:
		case <-changed:
		case <-evicted:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for node %q to let go of the slot: %w", node.ID, context.Cause(ctx))
		}
	}
}

// askUnless asks a node to evict, and stops waiting when something has changed among the nodes: one that
// is frozen does not answer, and is seen dead while it is waited for.
func (s *sharing) askUnless(ctx context.Context, changed <-chan struct{}, node cluster.Node, holders []holder) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		select {
		case <-changed:
			stop()
		case <-ctx.Done():
		}
	})
	_, err := s.ask(ctx, node, subjectEvict, holders)
	return err
}

// disconnect evicts all who have an epoch, in favour of nobody.
func (s *sharing) disconnect(ctx context.Context, at slotID) (sent int, err error) {
	p, leave, err := s.slots.enter(ctx, at)
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := s.store.Fresh(ctx, slotKeys(at.log, at.group)); err != nil {
		return 0, fmt.Errorf("read slot: %w", err)
	}
	var next slotEntry
	err = mirror.Uncontested(ctx, func() error {
		there, revision, err := s.read(ctx, at)
		if err != nil {
			return err
		}
		if next, sent = there.disconnect(s.gone); sent == 0 {
			return nil
		}
		if revision, err = s.write(ctx, at, revision, next); err == nil {
			s.learn(p, revision, next)
		}
		return err
	})
	if err != nil || sent == 0 {
		return 0, err
	}
	return sent, s.awaitLeaving(ctx, nil, next.Leaving)
}

// list gives who reads for a group, on any node, by partition.
func (s *sharing) list(ctx context.Context, log, group string) (map[string][]ReceiverInfo, error) {
	entries, err := s.store.List(ctx, slotKeys(log, group))
	if err != nil {
		return nil, fmt.Errorf("list receivers: %w", err)
	}
	all := make(map[string][]ReceiverInfo)
	for _, e := range entries {
		at, ok := slotOfKey(e.Key)
		if !ok {
			continue
		}
		entry, err := decodeSlot(e)
		if err != nil {
			return nil, err
		}
		for _, h := range remaining(entry.Holders, s.gone) {
			all[at.partition] = append(all[at.partition], ReceiverInfo{Partition: at.partition, Name: h.Name, Epoch: h.Epoch})
		}
	}
	return all, nil
}
