package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/meta"
)

// Group is a consumer group: a name under which readers keep positions of their own.
type Group struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// Groups are not kept in memory: they are asked for when a reader begins, not for
// each event. $Default is in no store, it comes with the hub.

func defaultGroup(h *hub) Group { return Group{Name: DefaultGroup, Created: h.Created} }

// Groups gives the hub's groups: $Default, then the others by name.
func (b *Broker) Groups(ctx context.Context, hub string) ([]Group, error) {
	h, err := b.find(hub)
	if err != nil {
		return nil, err
	}
	others, err := b.storedGroups(ctx, h)
	if err != nil {
		return nil, err
	}
	return append([]Group{defaultGroup(h)}, others...), nil
}

func (b *Broker) storedGroups(ctx context.Context, h *hub) ([]Group, error) {
	entries, err := b.meta.List(ctx, groupKeys(h.log))
	if err != nil {
		return nil, fmt.Errorf("list groups of hub %q: %w", h.Name, err)
	}
	groups := make([]Group, len(entries))
	for i, e := range entries {
		if groups[i], err = decodeGroup(e); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(groups, func(x, y Group) int { return cmp.Compare(x.Name, y.Name) })
	return groups, nil
}

func decodeGroup(e meta.Entry) (Group, error) {
	var g Group
	if err := json.Unmarshal(e.Value, &g); err != nil {
		return g, fmt.Errorf("read group %s: %w", e.Key, err)
	}
	return g, nil
}

// Group gives one group of a hub; a *NotFoundError if there is none. Case matters,
// except for $Default.
func (b *Broker) Group(ctx context.Context, hub, group string) (Group, error) {
	h, err := b.find(hub)
	if err != nil {
		return Group{}, err
	}
	return b.group(ctx, h, group)
}

func (b *Broker) group(ctx context.Context, h *hub, group string) (Group, error) {
	if isDefaultGroup(group) {
		return defaultGroup(h), nil
	}
	entry, err := b.groupEntry(ctx, h, group)
	if err != nil {
		return Group{}, err
	}
	return decodeGroup(entry)
}

func (b *Broker) groupEntry(ctx context.Context, h *hub, group string) (meta.Entry, error) {
	if !wellFormed(group) {
		return meta.Entry{}, groupNotFound(h, group)
	}
	entry, err := b.meta.Get(ctx, groupKey(h.log, group))
	if errors.Is(err, meta.ErrNotFound) {
		return meta.Entry{}, b.groupMissing(ctx, h, group)
	}
	if err != nil {
		return meta.Entry{}, fmt.Errorf("read group %q of hub %q: %w", group, h.Name, err)
	}
	return entry, nil
}

func groupNotFound(h *hub, group string) *NotFoundError {
	return &NotFoundError{Kind: KindGroup, Hub: h.Name, Name: group}
}

// groupMissing also looks for a group that differs only in case: that is the likely
// mistake of those who come from a service where case does not matter.
func (b *Broker) groupMissing(ctx context.Context, h *hub, group string) error {
	missing := groupNotFound(h, group)
	others, err := b.storedGroups(ctx, h)
	if err != nil {
		return missing
	}
	for _, other := range others {
		if fold(other.Name) == fold(group) {
			missing.Similar = other.Name
		}
	}
	return missing
}

// CreateGroup makes a consumer group. If it is there already, as $Default always is,
// the error is ErrGroupExists.
func (b *Broker) CreateGroup(ctx context.Context, hub, group string) (Group, error) {
	h, err := b.find(hub)
	if err != nil {
		return Group{}, err
	}
	if isDefaultGroup(group) {
		return Group{}, fmt.Errorf("create group %q of hub %q: %w: every hub has it", group, h.Name, ErrGroupExists)
	}
	if err := checkGroupName(group); err != nil {
		return Group{}, fmt.Errorf("create group of hub %q: %w", h.Name, err)
	}
	g := Group{Name: group, Created: now()}
	revision, err := b.meta.CompareAndSet(ctx, groupKey(h.log, group), 0, encode(g))
	switch {
	case errors.Is(err, meta.ErrConflict):
		return Group{}, fmt.Errorf("create group %q of hub %q: %w", group, h.Name, ErrGroupExists)
	case err != nil:
		return Group{}, fmt.Errorf("create group %q of hub %q: %w", group, h.Name, err)
	}
	if b.wasDeleted(ctx, h) {
		return Group{}, b.withdrawGroup(ctx, h, group, revision)
	}
	b.log.Info("group created", "hub", h.Name, "group", group)
	return g, nil
}

// wasDeleted tells whether the hub was deleted under us. The deletion may have listed
// the groups just before ours came, and would leave it behind for ever.
func (b *Broker) wasDeleted(ctx context.Context, h *hub) bool {
	there, err := b.read(ctx, h.Name)
	if err != nil {
		return errors.Is(err, meta.ErrNotFound)
	}
	return there.def.deleting() || there.def.Log != h.log
}

func (b *Broker) withdrawGroup(ctx context.Context, h *hub, group string, revision meta.Revision) error {
	err := b.meta.Delete(ctx, groupKey(h.log, group), revision)
	if err != nil && !goneOrChanged(err) {
		return fmt.Errorf("withdraw group %q of deleted hub %q: %w", group, h.Name, err)
	}
	return hubNotFound(h.Name)
}

// DeleteGroup deletes a consumer group; $Default is ErrDefaultGroup. Readers that use
// it go on until they close.
func (b *Broker) DeleteGroup(ctx context.Context, hub, group string) error {
	h, err := b.find(hub)
	if err != nil {
		return err
	}
	if isDefaultGroup(group) {
		return fmt.Errorf("delete group %q of hub %q: %w", group, h.Name, ErrDefaultGroup)
	}
	doing := fmt.Sprintf("delete group %q of hub %q", group, h.Name)
	err = untilUncontested(ctx, doing, func() error {
		entry, err := b.groupEntry(ctx, h, group)
		if err != nil {
			return err
		}
		if err = b.meta.Delete(ctx, entry.Key, entry.Revision); goneOrChanged(err) {
			return meta.ErrConflict // what there is now is for the next look to say
		}
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.log.Info("group deleted", "hub", h.Name, "group", group)
	return nil
}
