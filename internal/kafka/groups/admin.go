package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
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
type Member classic.MemberView

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
	stored, err := c.entries(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Description)
	for id, e := range stored {
		d := Description{ID: id, Node: e.Node, Epoch: e.Epoch}
		k := restore(time.Now(), e, c.cfg)
		d.Topics = k.Topics()
		k.show(&d)
		for _, s := range e.Shards {
			if !slices.Contains(d.Logs, s.Log) {
				d.Logs = append(d.Logs, s.Log)
			}
		}
		all[id] = d
	}
	for _, g := range c.loadedGroups() {
		if g.failed == nil && g.exists() && c.cfg.Mine(g.id) {
			all[g.id] = g.describe()
		}
	}
	list := make([]Description, 0, len(all))
	for _, d := range all {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Description) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return list, nil
}

// entries reads the groups that are this node's. What cannot be read is logged, and left out.
func (c *Coordinator) entries(ctx context.Context) (map[string]entry, error) {
	list, err := c.cfg.Meta.List(ctx, groupsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list Kafka groups: %w", err)
	}
	c.mu.Lock()
	c.stored = len(list)
	c.mu.Unlock()
	mine := make(map[string]entry)
	for _, raw := range list {
		id, err := idOf(raw.Key)
		if err != nil || !c.cfg.Mine(id) {
			continue
		}
		e, err := decodeEntry(raw)
		if err != nil {
			c.cfg.Log.Error("Kafka group cannot be read", "group", id, "error", err)
			continue
		}
		mine[id] = e
	}
	return mine, nil
}

// Delete deletes a group without members, with its offsets. may is asked with the hubs in which it has any.
func (c *Coordinator) Delete(ctx context.Context, id string, may func(logs []string) error) error {
	g, err := c.find(ctx, id, false)
	if err != nil {
		return err
	}
	if err := may(g.logs()); err != nil {
		return err
	}
	g.mu.Lock()
	if g.over == nil && !g.kind.Idle() {
		defer g.mu.Unlock()
		return ErrNotEmpty
	}
	g.giveUpLocked(ErrNotCoordinator) // who comes now asks again, and makes it anew
	writing, revision, shards := g.idle, g.revision, g.entry.Shards
	g.mu.Unlock()
	if writing != nil {
		<-writing // by which the revision may have changed
		g.mu.Lock()
		revision, shards = g.revision, g.entry.Shards
		g.mu.Unlock()
	}
	if revision == 0 {
		return nil
	}
	// What is begun does not depend on the patience of a client.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	for _, s := range shards {
		if err := c.remove(ctx, s.key(id)); err != nil {
			return fmt.Errorf("delete group %.80q: %w", id, err)
		}
	}
	if err := c.cfg.Meta.Delete(ctx, groupKey(id), revision); err != nil && !errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("delete group %.80q: %w", id, err)
	}
	c.counted(-1)
	return nil
}

// remove deletes an entry, whatever it holds.
func (c *Coordinator) remove(ctx context.Context, key string) error {
	return mirror.Uncontested(ctx, func() error {
		e, err := c.cfg.Meta.Get(ctx, key)
		if err == nil {
			err = c.cfg.Meta.Delete(ctx, key, e.Revision)
		}
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		return err
	})
}
