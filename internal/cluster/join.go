package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

const (
	pingTimeout = time.Second
	// returnTime is how long an entry of this ID, left by a process that does not answer, is watched
	// for a sign of life: a process that lives writes at least twice in it.
	returnTime = 2*WriteInterval + time.Second
	// leaveTimeout bounds the removal of the own entry at the end.
	leaveTimeout = 2 * time.Second
)

// Join makes this node one of the yard's: it serves requests, and its entry is written when it
// returns. Where another process of the same ID lives it gives ErrTaken, and ErrVersions where its
// program and those of others do not go together. After a process that crashed it waits for some seconds
// to be sure. After an error it may be called again. Run, which leaves again, must follow.
func (n *Nodes) Join(ctx context.Context) error {
	if n.alone || n.stop != nil {
		return nil
	}
	dead, err := n.agree(ctx)
	if err == nil {
		err = n.inherit(ctx)
	}
	if err != nil {
		return fmt.Errorf("join the yard as %q: %w", n.self.ID, err)
	}
	stop, err := n.cfg.Wire.Serve(n.self, n.handle)
	if err != nil {
		return fmt.Errorf("join the yard as %q: serve other nodes: %w", n.self.ID, err)
	}
	if err = n.write(ctx); err == nil {
		err = n.enter(ctx, dead)
	}
	if err != nil {
		stop()
		return fmt.Errorf("join the yard as %q: %w", n.self.ID, err)
	}
	n.stop = stop
	return nil
}

// enter looks around once others can see this node: of two that join at the same time, and cannot work
// beside each other, one sees the other.
func (n *Nodes) enter(ctx context.Context, dead map[Node]presence) error {
	err := n.disagree(ctx, dead)
	if err == nil {
		err = n.note(ctx)
	}
	if err != nil {
		n.leave(ctx)
		return err
	}
	return n.look(ctx)
}

// inherit finds the entry of an earlier process of this ID, and makes sure that it has ended.
func (n *Nodes) inherit(ctx context.Context) error {
	if err := n.cfg.Store.Fresh(ctx, nodesPrefix); err != nil {
		return err
	}
	first, there, err := n.own(ctx)
	if err != nil || !there {
		return err
	}
	before := Node{n.self.ID, first.Incarnation}
	asking, cancel := context.WithTimeout(ctx, pingTimeout)
	_, err = n.cfg.Wire.Ask(asking, Request{From: n.self, To: before, Subject: pingSubject})
	cancel()
	if err == nil {
		return taken(first)
	}
	if err := sleep.For(ctx, returnTime, nil); err != nil {
		return err
	}
	if err := n.cfg.Store.Fresh(ctx, nodesPrefix); err != nil {
		return err
	}
	second, there, err := n.own(ctx)
	if err == nil && there && second != first {
		return taken(second)
	}
	// What an earlier try was unsure of has been read; the entry of who has ended is not another's.
	n.unsure = n.unsure && err != nil
	return err
}

func taken(by presence) error {
	return fmt.Errorf("%w: one that was started at %s; give each node of a yard an ID of its own",
		ErrTaken, by.Started.Format(time.RFC3339))
}

// own reads the entry of this node's ID, whoever wrote it.
func (n *Nodes) own(ctx context.Context) (p presence, there bool, err error) {
	entry, err := n.cfg.Store.Get(ctx, nodesPrefix+n.self.ID)
	if errors.Is(err, meta.ErrNotFound) {
		n.revision = 0
		return presence{}, false, nil
	}
	if err != nil {
		return presence{}, false, err
	}
	if _, p, err = decodePresence(entry); err != nil {
		return presence{}, false, err
	}
	n.revision = entry.Revision
	return p, true, nil
}

// Run keeps this node among the living and looks at the others, until ctx ends; then it leaves. It
// returns nil, or ErrTaken when another process has taken this node's ID.
func (n *Nodes) Run(ctx context.Context) error {
	if n.alone {
		<-ctx.Done()
		return nil
	}
	if err := n.Join(ctx); err != nil {
		return err
	}
	defer func() { n.stop = nil }()
	defer n.stop()
	ticker := time.NewTicker(LookInterval)
	defer ticker.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			n.leave(ctx)
			return nil
		case <-n.announced:
			due = true
		case <-ticker.C:
		}
		err := n.round(ctx, due)
		if errors.Is(err, ErrTaken) {
			n.withdraw()
			return err
		}
		if err != nil && ctx.Err() == nil {
			n.log.Warn("the store of the nodes is out of reach; trying again", "error", err)
		}
	}
}

// round writes the own entry where it is time to, or where it is due all the same, and looks at the others.
func (n *Nodes) round(ctx context.Context, due bool) error {
	// A store that does not answer must not keep us from the next try.
	ctx, cancel := context.WithTimeout(ctx, WriteInterval)
	defer cancel()
	if due || time.Since(n.standing.Load().from) >= WriteInterval-LookInterval/2 { // the ticks are not exact
		if err := n.write(ctx); err != nil {
			return err
		}
	}
	return n.look(ctx)
}

// write makes the others see that this node lives.
func (n *Nodes) write(ctx context.Context) error {
	for range 3 {
		if n.unsure {
			if err := n.review(ctx); err != nil {
				return err
			}
		}
		from := time.Now()
		n.presence.Counter++
		n.mu.Lock()
		n.presence.Endpoints = n.endpoints
		n.mu.Unlock()
		revision, err := n.cfg.Store.CompareAndSet(ctx, nodesPrefix+n.self.ID, n.revision, n.presence.encode())
		if err == nil {
			n.revision = revision
			n.wrote(from)
			return nil
		}
		n.unsure = true
		if !errors.Is(err, meta.ErrConflict) {
			return fmt.Errorf("write presence: %w", err)
		}
	}
	return fmt.Errorf("write presence: %w", meta.ErrConflict)
}

// review reads what is there after a write that failed. It may be our own, whose answer was lost;
// nothing, where the entry of a node that was dead for long was removed; or another process's.
func (n *Nodes) review(ctx context.Context) error {
	there, exists, err := n.own(ctx)
	if err != nil {
		return fmt.Errorf("read presence: %w", err)
	}
	if exists && there.Incarnation != n.self.Incarnation {
		return taken(there)
	}
	n.unsure = false
	return nil
}

// wrote notes a write that began at from.
func (n *Nodes) wrote(from time.Time) {
	before := *n.standing.Load()
	after := before.wrote(n.presence.Counter, from, time.Now())
	n.standing.Store(&after)
	if after.term == before.term {
		return
	}
	if before.term > 0 {
		n.log.Warn("this node could not show that it lives; what it held alone is looked up again", "for", time.Since(before.from))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notifyLocked()
}

// withdraw ends this node's term for good.
func (n *Nodes) withdraw() { n.standing.Store(&standing{term: n.standing.Load().term}) }

// look takes in the entries of all nodes. Nobody is declared dead by what may be stale.
func (n *Nodes) look(ctx context.Context) error {
	if err := n.observe(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	suspects := n.roster.suspects(time.Now())
	left := n.roster.forget(time.Now())
	n.mu.Unlock()
	if suspects {
		asked := time.Now()
		if err := n.cfg.Store.Fresh(ctx, nodesPrefix); err != nil {
			return fmt.Errorf("look at the nodes: %w", err)
		}
		if err := n.observe(ctx); err != nil {
			return err
		}
		n.bury(asked)
	}
	return n.remove(ctx, left)
}

func (n *Nodes) observe(ctx context.Context) error {
	found, err := n.read(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.roster.observe(time.Now(), found) {
		n.notifyLocked()
	}
	return nil
}

// read gives the entries of all other nodes, as far as they can be read.
func (n *Nodes) read(ctx context.Context) (map[Node]presence, error) {
	entries, err := n.cfg.Store.List(ctx, nodesPrefix)
	if err != nil {
		return nil, fmt.Errorf("look at the nodes: %w", err)
	}
	found := make(map[Node]presence, len(entries))
	for _, e := range entries {
		node, p, err := decodePresence(e)
		if err != nil {
			n.log.Warn("the entry of a node cannot be read, and is passed over", "error", err)
			continue
		}
		if node != n.self {
			found[node] = p
		}
	}
	return found, nil
}

func (n *Nodes) bury(asked time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	dead := n.roster.bury(asked)
	for _, node := range dead {
		n.log.Warn("a node is seen no more; what it held may be taken", "node", node.ID, "incarnation", node.Incarnation)
	}
	if len(dead) > 0 {
		n.notifyLocked()
	}
}

// remove takes away the entries of nodes that have been dead for long, unless they change.
func (n *Nodes) remove(ctx context.Context, left []Node) error {
	for _, node := range left {
		entry, err := n.cfg.Store.Get(ctx, nodesPrefix+node.ID)
		if err == nil {
			if there, _, err := decodePresence(entry); err != nil || there != node {
				continue
			}
			err = n.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) && !errors.Is(err, meta.ErrConflict) {
			return fmt.Errorf("remove the entry of a dead node: %w", err)
		}
	}
	return nil
}

// leave takes the own entry away, so that others need not wait until it seems dead. Nothing may be
// held by then.
func (n *Nodes) leave(ctx context.Context) {
	n.withdraw()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	p, there, err := n.own(ctx)
	if err == nil && there && p.Incarnation == n.self.Incarnation {
		err = n.cfg.Store.Delete(ctx, nodesPrefix+n.self.ID, n.revision)
	}
	if err != nil {
		n.log.Warn("this node left without a word: others take what it held after a while", "error", err)
	}
}
