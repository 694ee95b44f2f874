package groups

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// load takes a group over: from then on this coordinator alone writes it. One that the store does not have is
// made in memory.
func (g *group) load() {
	c := g.coordinator
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	e, revision, err := g.claim(ctx)
	if err == nil && revision != 0 {
		err = g.fence(ctx, e)
	}
	if c.stopping() {
		err = ErrStopping
	}
	g.mu.Lock()
	switch {
	case err != nil:
		g.failed, g.over = wrap(err, "load group %.80q", g.id), ErrNotCoordinator
		g.kind = classicKind{classic.New(0)}
		c.forget(g)
	case revision == 0:
		g.kind = classicKind{classic.New(c.cfg.InitialDelay)}
	default:
		g.kind, g.entry, g.revision = restore(time.Now(), e, c.cfg), e, revision
	}
	g.noteLocked()
	g.mu.Unlock()
	close(g.loaded)
}

// claim raises the epoch of a group's entry. Where there is none the revision is zero.
func (g *group) claim(ctx context.Context) (entry, meta.Revision, error) {
	store, key := g.coordinator.cfg.Meta, groupKey(g.id)
	for try := 1; ; try++ {
		there, err := getEntry(ctx, g.coordinator, key)
		if errors.Is(err, meta.ErrNotFound) {
			return entry{}, 0, nil
		}
		if err != nil {
			return entry{}, 0, err
		}
		e, err := decodeEntry(there)
		if err != nil {
			return entry{}, 0, err
		}
		e.Node, e.Epoch, e.Write = g.coordinator.cfg.Node, max(e.Epoch+1, time.Now().UnixMilli()), 1
		e.Shards = slices.DeleteFunc(e.Shards, func(s shard) bool { return g.coordinator.gone(ctx, s.Log) })
		revision, err := store.CompareAndSet(ctx, key, there.Revision, encode(e))
		if err == nil {
			return e, revision, nil
		}
		if !again(err) || try == tries {
			return entry{}, 0, err
		}
		if err := sleep.About(ctx, 20*time.Millisecond); err != nil {
			return entry{}, 0, err
		}
	}
}

// getEntry reads the entry of a group; meta.ErrNotFound where there is none.
func getEntry(ctx context.Context, c *Coordinator, key string) (meta.Entry, error) {
	there, err := c.cfg.Meta.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) { // another node may have made it a moment ago
		looked, failed := c.looks.Fresh(ctx, groupsPrefix)
		if failed != nil {
			return meta.Entry{}, failed
		}
		if looked {
			return c.cfg.Meta.Get(ctx, key)
		}
	}
	return there, err
}

// fence writes the epoch to all shards, so that no coordinator from before can write them any more: also to
// those that are not there, which it might be about to make.
func (g *group) fence(ctx context.Context, e entry) error {
	store := g.coordinator.cfg.Meta
	for _, s := range e.Shards {
		for try := 1; ; try++ {
			o, expected, err := readOffsets(ctx, store, s.key(g.id))
			if err != nil {
				return err
			}
			if o.Epoch > e.Epoch {
				return ErrNotCoordinator
			}
			o.Epoch = e.Epoch
			revision, err := store.CompareAndSet(ctx, s.key(g.id), expected, encode(o))
			if err == nil {
				if expected == 0 && broker.LogGone(ctx, g.coordinator.cfg.Broker, s.Log) {
					_ = store.Delete(ctx, s.key(g.id), revision) // else the broker's sweep of deleted hubs does
				}
				break
			}
			if !again(err) || try == tries {
				return err
			}
			if err := sleep.About(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone: a hub was deleted. Those that this node does not know may be new.
func (c *Coordinator) gone(ctx context.Context, log string) bool {
	return broker.HubOf(c.cfg.Broker, log) == "" && broker.LogGone(ctx, c.cfg.Broker, log)
}
