package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// DeleteHub deletes a hub with its events and groups, for good.
//
// It is decided when the hub is marked in the store: from then on nobody sees it, and
// whatever interrupts the rest, the mark is there for the next who opens a broker or
// creates a hub of that name to finish it. Deleting again finishes it too.
func (b *Broker) DeleteHub(ctx context.Context, name string) error {
	return untilUncontested(ctx, fmt.Sprintf("delete hub %q", name), func() error { return b.delete(ctx, name) })
}

func (b *Broker) delete(ctx context.Context, name string) error {
	if !wellFormed(name) {
		return hubNotFound(name)
	}
	there, err := b.read(ctx, name)
	if errors.Is(err, meta.ErrNotFound) {
		return hubNotFound(name)
	}
	if err != nil {
		return fmt.Errorf("delete hub %q: %w", name, err)
	}
	// What is decided does not depend on the patience of a client, and the decision
	// itself would be in doubt if it did.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if there, err = b.markDeleting(ctx, there); err != nil {
		return fmt.Errorf("delete hub %q: %w", name, err)
	}
	if err := b.finishDeletion(ctx, there); err != nil {
		return fmt.Errorf("hub %q is deleted but still takes up storage, delete it again to free that: %w", name, err)
	}
	b.log.Info("hub deleted", "hub", there.def.Name, "log", there.def.Log)
	return nil
}

func (b *Broker) markDeleting(ctx context.Context, there sighting) (sighting, error) {
	if there.def.deleting() {
		return there, nil
	}
	there.def.State = stateDeleting
	return b.put(ctx, there)
}

// finishTimeout bounds the part of a deletion that goes on although the caller has
// left.
const finishTimeout = time.Minute

// finishDeletion does what is left of a deletion that was decided. Each step may be
// done twice, or by two nodes at once: storage names are never used again. The hub's
// key goes last, as it is what says that there is something to finish.
func (b *Broker) finishDeletion(ctx context.Context, marked sighting) error {
	if err := b.engine.Remove(ctx, marked.def.Log); err != nil {
		return fmt.Errorf("remove log %s: %w", marked.def.Log, err)
	}
	b.ledgers.forget(marked.def.Log)
	for _, prefix := range []string{groupKeys(marked.def.Log), hubRecordKeys(marked.def.Log), producerKeys(marked.def.Log)} {
		if err := b.deleteEntries(ctx, prefix); err != nil {
			return err
		}
	}
	return b.forget(ctx, marked)
}

// deleteEntries removes what the store has about a hub or group that is being deleted, until
// nothing is left: what is changed between the list and the deletion is deleted in the
// next round, and what is gone cannot be changed. Who creates one of them meanwhile notices
// the deletion and takes it back.
func (b *Broker) deleteEntries(ctx context.Context, prefix string) error {
	for range maxTries {
		entries, err := b.meta.List(ctx, prefix)
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		if len(entries) == 0 {
			return nil
		}
		for _, e := range entries {
			if err := b.meta.Delete(ctx, e.Key, e.Revision); err != nil && !goneOrChanged(err) {
				return fmt.Errorf("delete %s: %w", e.Key, err)
			}
		}
	}
	return fmt.Errorf("delete %s: others keep writing there", prefix)
}

// forget deletes the hub's key. Another revision there means that somebody else
// finished, and maybe created a hub anew.
func (b *Broker) forget(ctx context.Context, marked sighting) error {
	b.hubs.begin()
	defer b.hubs.end()
	err := b.meta.Delete(ctx, hubKey(marked.name), marked.revision)
	if err != nil && !goneOrChanged(err) {
		return fmt.Errorf("delete definition: %w", err)
	}
	b.hubs.apply(sighting{name: marked.name, revision: marked.revision, gone: true})
	return nil
}

func goneOrChanged(err error) bool {
	return errors.Is(err, meta.ErrNotFound) || errors.Is(err, meta.ErrConflict)
}
