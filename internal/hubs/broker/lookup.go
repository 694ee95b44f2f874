package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// find gives a hub; a *NotFoundError where there is none, also in the store. Where that cannot be known just now, the
// error is the store's.
func (b *Broker) find(ctx context.Context, name string) (*hub, error) {
	h, err := b.hubs.known(name)
	if err == nil || !wellFormed(name) {
		return h, err
	}
	looked, failed := b.lookups.Fresh(ctx, hubsPrefix)
	if looked {
		failed = b.definitions.Refresh(ctx, hubKey(fold(name)))
	}
	if failed != nil && !errors.Is(failed, meta.ErrNotFound) {
		return nil, fmt.Errorf("look for hub %.80q: %w", name, failed)
	}
	return b.hubs.known(name)
}

// LookUp is Hub for who is about to tell a client with a right to that name that there is no such
// hub: another node may have created it a moment ago. It may wait for storage.
func (b *Broker) LookUp(ctx context.Context, name string) (Hub, error) {
	h, err := b.find(ctx, name)
	if err != nil {
		return Hub{}, err
	}
	return h.Hub, nil
}

// ByID gives the hub with an id; a *NotFoundError where there is none, also in the store. It may wait for
// storage as LookUp does.
func (f *Frames) ByID(ctx context.Context, id [16]byte) (Hub, error) {
	b := f.broker
	h := b.hubs.live.Load().byID[id]
	if h == nil {
		if err := seek(ctx, b, id); err != nil {
			return Hub{}, fmt.Errorf("look for the hub with id %x: %w", id, err)
		}
		h = b.hubs.live.Load().byID[id]
	}
	if h == nil {
		return Hub{}, hubNotFound(fmt.Sprintf("with id %x", id))
	}
	return h.Hub, nil
}

// seek looks in the store for a hub that another node may have created a moment ago.
func seek(ctx context.Context, b *Broker, id [16]byte) error {
	looked, err := b.lookups.Fresh(ctx, hubsPrefix)
	if !looked || err != nil {
		return err
	}
	stored, err := b.definitions.List(ctx, hubsPrefix)
	if err != nil {
		return err
	}
	for _, there := range stored {
		if there.Value.id() != id {
			continue
		}
		if err := b.definitions.Refresh(ctx, there.Key); err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
	}
	return nil
}

// LogOf names the log that keeps the events of a hub, by its id; empty if this node knows of none. It does no I/O.
func LogOf(b *Broker, id [16]byte) string {
	if h := b.hubs.live.Load().byID[id]; h != nil {
		return h.log
	}
	return ""
}

// LogGone reports whether the hub of a log was deleted. Who has made an entry under the keys of a log asks, and
// takes it back: the deletion may have listed what there is just before. Where it cannot be known it is not gone.
func LogGone(ctx context.Context, b *Broker, log string) bool {
	if err := b.meta.Fresh(ctx, hubsPrefix); err != nil {
		b.log.Warn("whether a hub was deleted meanwhile is not certain, something of it may stay behind", "error", err)
		return false // it may have been created a moment ago
	}
	stored, err := b.definitions.List(ctx, hubsPrefix)
	if err != nil {
		return false
	}
	for _, there := range stored {
		if there.Value.Log == log {
			return there.Value.deleting()
		}
	}
	return true
}
