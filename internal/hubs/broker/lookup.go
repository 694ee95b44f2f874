package broker

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// find gives a hub; a *NotFoundError where there is none, also in the store.
func (b *Broker) find(ctx context.Context, name string) (*hub, error) {
	h, err := b.hubs.known(name)
	if err == nil || !wellFormed(name) || !b.lookups.Fresh(ctx, hubsPrefix) {
		return h, err
	}
	if err := b.definitions.Refresh(ctx, hubKey(fold(name))); err != nil {
		if !errors.Is(err, meta.ErrNotFound) {
			b.log.Warn("a hub is not known, and cannot be looked up", "error", err)
		}
		return nil, hubNotFound(name)
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
