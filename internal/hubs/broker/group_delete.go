package broker

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// DeleteGroup deletes a consumer group with what is recorded of it, for good; $Default is
// ErrDefaultGroup. Readers that use it go on until they close.
//
// As with hubs it is decided when the group is marked, and whatever interrupts the rest,
// the next who opens a broker, creates a group of that name or deletes it again finishes it.
func (b *Broker) DeleteGroup(ctx context.Context, hub, group string) error {
	h, err := b.find(hub)
	if err != nil {
		return err
	}
	if isDefaultGroup(group) {
		return fmt.Errorf("delete group %q of hub %q: %w", group, h.Name, ErrDefaultGroup)
	}
	if err := mirror.Uncontested(ctx, func() error { return b.deleteGroup(ctx, h, group) }); err != nil {
		return err
	}
	b.log.Info("group deleted", "hub", h.Name, "group", group)
	return nil
}

func (b *Broker) deleteGroup(ctx context.Context, h *hub, group string) error {
	stored, revision, err := b.readGroup(ctx, h, group)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout) // as for hubs
	defer cancel()
	if !stored.deleting() {
		stored.State = stateDeleting
		if revision, err = b.meta.CompareAndSet(ctx, groupKey(h.log, group), revision, encode(stored)); err != nil {
			return fmt.Errorf("delete group %q of hub %q: %w", group, h.Name, err)
		}
	}
	if err := b.finishGroupDeletion(ctx, h.log, stored, revision); err != nil {
		return fmt.Errorf("group %q of hub %q is deleted but still takes up storage, delete it again to free that: %w", group, h.Name, err)
	}
	return nil
}

// finishGroupDeletion does what is left of a deletion that was decided. Each step may be
// done twice, or by two nodes at once: the records' keys are never used again. The
// group's own key goes last.
func (b *Broker) finishGroupDeletion(ctx context.Context, log string, marked storedGroup, revision meta.Revision) error {
	if err := b.deleteEntries(ctx, recordKeys(log, marked.incarnation())); err != nil {
		return err
	}
	key := groupKey(log, marked.Name)
	if err := b.meta.Delete(ctx, key, revision); err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// resumeGroupDeletions finishes what a crash interrupted; as with hubs, one that cannot be
// removed now keeps nobody waiting.
func (b *Broker) resumeGroupDeletions(ctx context.Context) error {
	entries, err := b.meta.List(ctx, groupsPrefix)
	if err != nil {
		return fmt.Errorf("read groups: %w", err)
	}
	for _, e := range entries {
		g, err := decodeGroup(e)
		if err != nil || !g.deleting() {
			continue // what cannot be read is told to who asks for it
		}
		if err := b.finishGroupDeletion(ctx, logOfGroupKey(e.Key), g, e.Revision); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("finish deletion of group %q: %w", g.Name, err)
			}
			b.log.Warn("deleted group still takes up storage, the next start tries again", "group", g.Name, "error", err)
			continue
		}
		b.log.Info("interrupted deletion of group finished", "group", g.Name)
	}
	return nil
}
