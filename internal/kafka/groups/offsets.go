package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Committer is who commits: a member of a generation, or, with neither, somebody who assigns partitions
// himself, while the group has no members.
type Committer struct {
	Member, Instance string
	Generation       int32 // negative: none
	// May reports whether there is a right to a hub; nil: to all. Somebody without a group's members needs one to all
	// hubs in which it has offsets: else anybody could go on in the name of a group that is at rest.
	May func(hub string) bool
}

// outside: somebody who is no member.
func (by Committer) outside() bool { return by.Generation < 0 && by.Member == "" }

// Commit stores positions of partitions, and gives the errors of those that were not stored. It returns when the
// others are durable. Rights to the hubs of the positions are the caller's to judge.
func (c *Coordinator) Commit(ctx context.Context, id string, by Committer, positions map[Partition]Position) (map[Partition]error, error) {
	change := make(map[Partition]*Position, len(positions))
	failed := make(map[Partition]error)
	for p, position := range positions {
		if len(position.Metadata) > MaxMetadataBytes {
			failed[p] = ErrMetadata
			continue
		}
		position.Time = time.Now()
		change[p] = &position
	}
	if err := checkID(id); err != nil {
		return nil, err
	}
	if _, err := c.Stages.fold(ctx, id); err != nil { // what was committed before must not come behind it
		return nil, err
	}
	var more map[Partition]error
	do := func(g *group) (err error) {
		more, err = g.commit(ctx, change, func(now time.Time) error {
			if by.outside() && by.May != nil {
				if err := may(by.May).all(g.hubsLocked()); err != nil {
					return err
				}
			}
			return g.kind.commit(now, by, change)
		})
		return err
	}
	if by.outside() {
		err := c.findOrMake(ctx, id, do)
		return together(failed, more), err
	}
	g, err := c.find(ctx, id, false)
	if errors.Is(err, ErrNotFound) {
		err = member.ErrGeneration // there is no group to be a member of
	}
	if err == nil {
		err = do(g)
	}
	return together(failed, more), err
}

// together has the errors of both.
func together(failed, more map[Partition]error) map[Partition]error {
	for p, err := range more {
		failed[p] = err
	}
	return failed
}

// commit has positions stored; nil ones are removed. allowed is asked with the group's lock held.
func (g *group) commit(ctx context.Context, positions map[Partition]*Position, allowed func(now time.Time) error) (map[Partition]error, error) {
	return g.commitWithin(ctx, maxShards, positions, allowed)
}

// commitWithin is commit for a group that may have so many shards afterwards.
func (g *group) commitWithin(ctx context.Context, most int, positions map[Partition]*Position, allowed func(now time.Time) error) (map[Partition]error, error) {
	c := &commit{set: make(map[shard]map[int32]*Position), done: make(chan struct{})}
	for p, position := range positions {
		s := shardOf(p)
		if c.set[s] == nil {
			c.set[s] = make(map[int32]*Position)
		}
		c.set[s][p.Number] = position
	}
	err := g.do(func(now time.Time) error {
		if err := allowed(now); err != nil {
			return err
		}
		shards := len(g.entry.Shards)
		for s, set := range c.set {
			if slices.Contains(g.entry.Shards, s) {
				continue
			}
			// Nothing is removed where nothing is: else a shard would be made for it.
			maps.DeleteFunc(set, func(_ int32, p *Position) bool { return p == nil })
			if len(set) == 0 {
				delete(c.set, s)
				continue
			}
			shards++
		}
		if shards > most {
			return ErrTooManyGroups
		}
		if len(c.set) == 0 {
			close(c.done)
			return nil
		}
		g.commits = append(g.commits, c)
		g.writeLocked()
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, ErrStopping // whether it is stored is not known
	}
	failed := make(map[Partition]error)
	for p := range positions {
		if err := c.errs[shardOf(p)]; err != nil {
			failed[p] = err
		}
	}
	return failed, c.err
}

// Logs gives the hubs in which a group has offsets, by their logs; none where there is no such group.
func (c *Coordinator) Logs(ctx context.Context, id string) ([]string, error) {
	g, err := c.find(ctx, id, false)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return g.logs(), nil
}

func (g *group) logs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.entry.logs()
}

// hubsLocked are the hubs in which the group has offsets, by name. Those that this node does not know are deleted, or
// about to be.
func (g *group) hubsLocked() []string { return hubsOf(g.coordinator.cfg.Broker, g.entry) }

func hubsOf(b *broker.Broker, e entry) (names []string) {
	for _, log := range e.logs() {
		if name := broker.HubOf(b, log); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// logs are the hubs in which a group may have offsets, in order.
func (e entry) logs() (logs []string) {
	for _, s := range e.Shards {
		logs = append(logs, s.Log)
	}
	slices.Sort(logs)
	return slices.Compact(logs)
}

// Offsets gives what a group has committed in a hub, by partition; nothing where there is no such group.
func (c *Coordinator) Offsets(ctx context.Context, id, log string) (map[int32]Position, error) {
	g, err := c.find(ctx, id, false)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return committedIn(ctx, c.cfg.Meta, g.id, log)
}

func committedIn(ctx context.Context, store meta.Store, id, log string) (map[int32]Position, error) {
	entries, err := store.List(ctx, offsetKeys(id, log))
	if err != nil {
		return nil, fmt.Errorf("read offsets of group %.80q: %w", id, err)
	}
	all := make(map[int32]Position)
	for _, e := range entries {
		o, err := decodeOffsets(e)
		if err != nil {
			return nil, err
		}
		for partition, position := range o.Partitions {
			all[partition] = position
		}
	}
	return all, nil
}

// Move sets positions of a group that has no members, or removes those that are nil. It is for operators.
func (c *Coordinator) Move(ctx context.Context, id string, positions map[Partition]*Position) (map[Partition]error, error) {
	g, err := c.find(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return g.commit(ctx, positions, func(time.Time) error {
		if !g.kind.Idle() {
			return ErrNotEmpty
		}
		return nil
	})
}

// DeleteOffsets removes what a group has committed of partitions. Those of hubs that members subscribe to stay:
// their errors are ErrSubscribed.
func (c *Coordinator) DeleteOffsets(ctx context.Context, id string, partitions []Partition) (map[Partition]error, error) {
	if err := c.Stages.foldHere(ctx, id); err != nil {
		return nil, err
	}
	g, err := c.find(ctx, id, false)
	if err != nil {
		return nil, err
	}
	change, refused := make(map[Partition]*Position), make(map[Partition]error)
	err = g.do(func(time.Time) error {
		topics := g.kind.Topics()
		if !g.kind.Idle() && len(topics) == 0 {
			return ErrNotEmpty // it is no group of consumers
		}
		for _, p := range partitions {
			name := broker.HubOf(c.cfg.Broker, p.Log)
			if slices.ContainsFunc(topics, func(t string) bool { return auth.Fold(t) == auth.Fold(name) }) {
				refused[p] = ErrSubscribed
			} else {
				change[p] = nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	failed, err := g.commit(ctx, change, func(time.Time) error { return nil })
	for p, why := range failed {
		refused[p] = why
		delete(change, p)
	}
	if err == nil {
		c.cfg.noteOffsets(ctx, id, change)
	}
	return refused, err
}
