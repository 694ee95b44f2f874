package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// DeleteHub deletes a hub with its events and groups, for good.
//
// It is decided when the hub is marked in the store: from then on nobody sees it, and
// whatever interrupts the rest, the mark is there for the next who opens a broker or
// creates a hub of that name to finish it. Deleting again finishes it too.
func (b *Broker) DeleteHub(ctx context.Context, name string) error {
	return deleteHub(ctx, b, name, func(definition) bool { return true })
}

// DeleteByID is DeleteHub for the hub with an id alone: one that was made anew under its name stays.
func (f *Frames) DeleteByID(ctx context.Context, id [16]byte) error {
	h, err := f.ByID(ctx, id)
	if err != nil {
		return err
	}
	return deleteHub(ctx, f.broker, h.Name, func(d definition) bool { return d.id() == id })
}

// deleteHub deletes the hub of a name if it is the one that is meant, which is looked at each time that
// the store is read.
func deleteHub(ctx context.Context, b *Broker, name string, meant func(definition) bool) error {
	if !wellFormed(name) {
		return hubNotFound(name)
	}
	err := mirror.Uncontested(ctx, func() error {
		there, err := b.read(ctx, name)
		if err != nil {
			return err
		}
		if !meant(there.Value) {
			return meta.ErrNotFound
		}
		// What is decided does not depend on the patience of a client, and the decision
		// itself would be in doubt if it did.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
		defer cancel()
		if !there.Value.deleting() {
			there.Value.State = stateDeleting
			if there, err = b.definitions.Put(ctx, there); err != nil {
				return err
			}
		}
		if err := b.finishDeletion(ctx, there); err != nil {
			return fmt.Errorf("it is deleted but still takes up storage, delete it again to free that: %w", err)
		}
		b.log.Info("hub deleted", "hub", there.Value.Name, "log", there.Value.Log)
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) {
		return hubNotFound(name)
	}
	if err != nil {
		return fmt.Errorf("delete hub %q: %w", name, err)
	}
	return nil
}

// finishTimeout bounds the part of a deletion that goes on although the caller has left.
const finishTimeout = time.Minute

// finishDeletion does what is left of a deletion that was decided. Each step may be
// done twice, or by two nodes at once: storage names are never used again. The hub's
// key goes last, as it is what says that there is something to finish.
func (b *Broker) finishDeletion(ctx context.Context, marked mirror.Item[definition]) error {
	log := marked.Value.Log
	if err := b.engine.Remove(ctx, log); err != nil {
		return fmt.Errorf("remove log %s: %w", log, err)
	}
	b.ledgers.forget(log)
	for _, prefix := range logEntries(log) {
		if err := deleteEntries(ctx, b.meta, prefix); err != nil {
			return err
		}
	}
	// Another revision means that somebody else finished, and maybe created a hub anew.
	if err := b.definitions.Delete(ctx, marked); err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("delete definition: %w", err)
	}
	b.definitions.Forget(marked) // others have finished it, and the watch may not have reported even the mark
	return nil
}

// deleteEntries removes what the store has about a hub or group that is being deleted, until
// nothing is left: what is changed between the list and the deletion is deleted in the
// next round, and what is gone cannot be changed. Who creates one of them meanwhile notices
// the deletion and takes it back; see Broker.refresh.
func deleteEntries(ctx context.Context, store meta.Store, prefix string) error {
	if err := store.Fresh(ctx, prefix); err != nil {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	for range mirror.MaxTries {
		entries, err := store.List(ctx, prefix)
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		if len(entries) == 0 {
			return nil
		}
		for _, e := range entries {
			if err := store.Delete(ctx, e.Key, e.Revision); err != nil && !mirror.GoneOrChanged(err) {
				return fmt.Errorf("delete %s: %w", e.Key, err)
			}
		}
	}
	return fmt.Errorf("delete %s: others keep writing there", prefix)
}
