package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Description is a group as clients and operators see it.
type Description struct {
	ID         string
	Kind       string
	State      string
	Generation int32
	// Type and Protocol are those of classic groups.
	Type, Protocol string
	Members        []Member
	// Topics are what members subscribe to, and Logs the hubs in which the group has offsets.
	Topics, Logs []string
	// Node coordinates the group, under that epoch.
	Node  string
	Epoch int64
}

// Member is one of a group.
type Member struct {
	classic.MemberView
	// assigned are the partitions of a member of KIP-848.
	assigned consumer.Set
}

// Describe gives a group that is this node's; ErrNotFound where there is none.
func (c *Coordinator) Describe(ctx context.Context, id string) (Description, error) {
	g, err := c.find(ctx, id, false)
	if err != nil {
		return Description{}, err
	}
	return g.describe(), nil
}

func (g *group) describe() Description {
	logs := g.logs()
	g.mu.Lock()
	defer g.mu.Unlock()
	d := Description{ID: g.id, Topics: g.kind.Topics(), Logs: logs, Node: g.coordinator.cfg.Node, Epoch: g.entry.Epoch}
	g.kind.show(&d)
	return d
}

// List gives all groups that are this node's, by id. Those that nobody uses are as the store has them.
func (c *Coordinator) List(ctx context.Context) ([]Description, error) {
	return list(ctx, c, c.cfg.Mine)
}

// list gives groups by id, those that mine says.
func list(ctx context.Context, c *Coordinator, mine func(id string) bool) ([]Description, error) {
	all := make(map[string]Description)
	for _, g := range c.loadedGroups() {
		if g.failed == nil && g.exists() && c.cfg.Mine(g.id) {
			all[g.id] = g.describe()
		}
	}
	loaded := func(id string) bool { _, there := all[id]; return there }
	err := c.each(ctx, mine, loaded, func(id string, e entry) { all[id] = e.describe(id, c.cfg) })
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Description) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// describe gives a group as the store has it.
func (e entry) describe(id string, cfg Config) Description {
	k := restore(time.Now(), e, cfg)
	d := Description{ID: id, Topics: k.Topics(), Logs: e.logs(), Node: e.Node, Epoch: e.Epoch}
	k.show(&d)
	return d
}

// entries reads the groups that are this node's. What cannot be read is logged, and left out.
func (c *Coordinator) entries(ctx context.Context) (map[string]entry, error) {
	mine, none := make(map[string]entry), func(string) bool { return false }
	by := make(map[string]int)
	c.mu.Lock()
	changed := c.changed
	c.mu.Unlock()
	err := c.each(ctx, func(string) bool { return true }, none, func(id string, e entry) {
		by[e.By]++
		if c.cfg.Mine(id) {
			mine[id] = e
		}
	})
	if err == nil {
		c.mu.Lock()
		if c.changed == changed { // else some were read before, and others after that
			c.storedBy = by
		}
		c.mu.Unlock()
	}
	return mine, err
}

// each reads the groups that which says, one after the other: what they have is many times what is kept of them.
// Those are not read that but says.
func (c *Coordinator) each(ctx context.Context, which, but func(id string) bool, f func(id string, e entry)) error {
	list, err := c.cfg.Meta.List(ctx, groupsPrefix)
	if err != nil {
		return fmt.Errorf("list Kafka groups: %w", err)
	}
	c.mu.Lock()
	c.stored = len(list)
	c.mu.Unlock()
	for _, raw := range list {
		id, err := idOf(raw.Key)
		if err != nil || !which(id) || but(id) {
			continue
		}
		e, err := decodeEntry(raw)
		if err != nil {
			c.cfg.Log.Error("Kafka group cannot be read", "group", id, "error", err)
			continue
		}
		f(id, e)
	}
	return nil
}

// Delete deletes a group without members, with its offsets. may is asked with the hubs in which it has any.
func (c *Coordinator) Delete(ctx context.Context, id string, may func(logs []string) error) error {
	if err := c.Stages.foldHere(ctx, id); err != nil {
		return err
	}
	g, err := c.find(ctx, id, false)
	if err != nil {
		return err
	}
	if err := may(g.logs()); err != nil {
		return err
	}
	return c.delete(ctx, g, func(_ context.Context, e entry) error { return may(e.logs()) })
}

// delete deletes a group, if nobody is in it and check agrees: it is asked with the group as it is at last, when
// nobody writes it any more. Whoever uses the group meanwhile loads it anew, and has it then: the entry is claimed
// before anything is deleted, as by any other coordinator, and of the shards only those are deleted that nobody has
// claimed since.
func (c *Coordinator) delete(ctx context.Context, g *group, check func(ctx context.Context, e entry) error) error {
	g.mu.Lock()
	if err := g.over; err != nil || !g.kind.Idle() {
		defer g.mu.Unlock()
		return cmp.Or(err, ErrNotEmpty)
	}
	g.giveUpLocked(ErrNotCoordinator) // who comes now asks again, and makes it anew
	writing := g.idle
	g.mu.Unlock()
	if writing != nil {
		<-writing
	}
	g.mu.Lock()
	revision, e := g.revision, g.entry
	g.mu.Unlock()
	if revision == 0 {
		return nil
	}
	// What is begun does not depend on the patience of a client.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := check(ctx, e); err != nil {
		return err
	}
	e.Epoch, e.Write = max(e.Epoch+1, time.Now().UnixMilli()), 0 // a claim by this node has the number 1
	revision, err := g.put(ctx, e, revision)
	if err != nil {
		return fmt.Errorf("delete group %.80q: %w", g.id, err)
	}
	for _, s := range e.Shards {
		if err := c.remove(ctx, s.key(g.id), e.Epoch); err != nil {
			return fmt.Errorf("delete group %.80q: %w", g.id, err)
		}
	}
	err = c.cfg.Meta.Delete(ctx, groupKey(g.id), revision)
	switch {
	case errors.Is(err, meta.ErrConflict):
		return ErrNotCoordinator // somebody has loaded it, and it goes on without offsets
	case err != nil && !errors.Is(err, meta.ErrNotFound):
		return fmt.Errorf("delete group %.80q: %w", g.id, err)
	}
	c.counted(e.By, -1)
	c.cfg.noteDeleted(ctx, g.id, e.logs())
	return nil
}

// remove deletes a shard, unless it is of a later coordinator than the one with that epoch.
func (c *Coordinator) remove(ctx context.Context, key string, epoch int64) error {
	return mirror.Uncontested(ctx, func() error {
		o, revision, err := readOffsets(ctx, c.cfg.Meta, key)
		switch {
		case err != nil:
			return err
		case revision == 0:
			return nil
		case o.Epoch > epoch:
			return ErrNotCoordinator
		}
		err = c.cfg.Meta.Delete(ctx, key, revision)
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		return err
	})
}
