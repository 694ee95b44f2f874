package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Group is a consumer group: a name under which readers keep positions of their own.
type Group struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// storedGroup is a group as the store keeps it.
type storedGroup struct {
	Group
	// ID tells it from an earlier group of its name.
	ID string `json:"id,omitempty"`
	// State is empty, or stateDeleting from the moment a deletion is decided.
	State string `json:"state,omitempty"`
}

func (g storedGroup) deleting() bool { return g.State == stateDeleting }

// incarnation is the ID, and for groups from before there were any as good as one.
func (g storedGroup) incarnation() string {
	if g.ID == "" {
		return fmt.Sprintf("created-%d", g.Created.UnixMilli())
	}
	return g.ID
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
	groups := make([]Group, 0, len(entries))
	for _, e := range entries {
		g, err := decodeGroup(e)
		if err != nil {
			return nil, err
		}
		if !g.deleting() {
			groups = append(groups, g.Group)
		}
	}
	slices.SortFunc(groups, func(x, y Group) int { return cmp.Compare(x.Name, y.Name) })
	return groups, nil
}

func decodeGroup(e meta.Entry) (storedGroup, error) {
	var g storedGroup
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
	stored, err := b.visibleGroup(ctx, h, group)
	return stored.Group, err
}

// visibleGroup reads a group that users see.
func (b *Broker) visibleGroup(ctx context.Context, h *hub, group string) (storedGroup, error) {
	stored, _, err := b.readGroup(ctx, h, group)
	if err == nil && stored.deleting() {
		err = groupNotFound(h, group)
	}
	if err != nil {
		return storedGroup{}, err
	}
	return stored, nil
}

// readGroup reads a group, also one whose deletion is decided.
func (b *Broker) readGroup(ctx context.Context, h *hub, group string) (storedGroup, meta.Revision, error) {
	if !wellFormed(group) {
		return storedGroup{}, 0, groupNotFound(h, group)
	}
	entry, err := b.meta.Get(ctx, groupKey(h.log, group))
	if errors.Is(err, meta.ErrNotFound) {
		return storedGroup{}, 0, b.groupMissing(ctx, h, group)
	}
	if err != nil {
		return storedGroup{}, 0, fmt.Errorf("read group %q of hub %q: %w", group, h.Name, err)
	}
	stored, err := decodeGroup(entry)
	return stored, entry.Revision, err
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
	g := storedGroup{Group: Group{Name: group, Created: now()}, ID: strings.ToLower(rand.Text())}
	revision, err := b.putGroup(ctx, h, g)
	if err != nil {
		return Group{}, fmt.Errorf("create group %q of hub %q: %w", group, h.Name, err)
	}
	if b.wasDeleted(ctx, h) {
		return Group{}, b.withdrawGroup(ctx, h, group, revision)
	}
	b.log.Info("group created", "hub", h.Name, "group", group)
	return g.Group, nil
}

// putGroup lets the store decide who is first. A group of that name that is still being
// deleted is finished with.
func (b *Broker) putGroup(ctx context.Context, h *hub, g storedGroup) (revision meta.Revision, err error) {
	err = mirror.Uncontested(ctx, func() (conflict error) {
		revision, conflict = b.meta.CompareAndSet(ctx, groupKey(h.log, g.Name), 0, encode(g))
		if !errors.Is(conflict, meta.ErrConflict) {
			return conflict
		}
		there, at, err := b.readGroup(ctx, h, g.Name)
		var missing *NotFoundError
		switch {
		case errors.As(err, &missing):
			return conflict
		case err != nil:
			return err
		case !there.deleting():
			return ErrGroupExists
		}
		if err := b.finishGroupDeletion(ctx, h.log, there, at); err != nil {
			return fmt.Errorf("finish deletion of the group that had this name: %w", err)
		}
		return conflict
	})
	return revision, err
}

// wasDeleted tells whether the hub was deleted under us. The deletion may have listed
// the groups just before ours came, and would leave it behind for ever.
func (b *Broker) wasDeleted(ctx context.Context, h *hub) bool {
	there, err := b.read(ctx, h.Name)
	if err != nil {
		return errors.Is(err, meta.ErrNotFound)
	}
	return there.Value.deleting() || there.Value.Log != h.log
}

func (b *Broker) withdrawGroup(ctx context.Context, h *hub, group string, revision meta.Revision) error {
	err := b.meta.Delete(ctx, groupKey(h.log, group), revision)
	if err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("withdraw group %q of deleted hub %q: %w", group, h.Name, err)
	}
	return hubNotFound(h.Name)
}
