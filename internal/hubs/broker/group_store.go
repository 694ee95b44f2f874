package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// groupStore reads and writes groups in the meta store. They are not kept in memory: they are
// looked up when a reader begins, not for each event. $Default is not stored, it comes with the
// hub.
type groupStore struct {
	meta    meta.Store
	lookups *looks.Looks
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

func decodeGroup(e meta.Entry) (storedGroup, error) {
	var g storedGroup
	if err := json.Unmarshal(e.Value, &g); err != nil {
		return g, fmt.Errorf("read group %s: %w", e.Key, err)
	}
	return g, nil
}

// list gives the stored groups of a hub that users see, by name.
func (s groupStore) list(ctx context.Context, h *hub) ([]Group, error) {
	entries, err := s.meta.List(ctx, groupKeys(h.log))
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

// get gives a group that users see.
func (s groupStore) get(ctx context.Context, h *hub, group string) (storedGroup, error) {
	if isDefaultGroup(group) {
		return storedGroup{Group: defaultGroup(h), ID: defaultIncarnation}, nil
	}
	stored, _, err := s.read(ctx, h, group)
	if err == nil && stored.deleting() {
		err = groupNotFound(h, group)
	}
	return stored, err
}

// read reads a group, also one whose deletion is decided.
func (s groupStore) read(ctx context.Context, h *hub, group string) (storedGroup, meta.Revision, error) {
	if !wellFormed(group) {
		return storedGroup{}, 0, groupNotFound(h, group)
	}
	entry, err := s.meta.Get(ctx, groupKey(h.log, group))
	if errors.Is(err, meta.ErrNotFound) {
		if looked, failed := s.lookups.Fresh(ctx, groupKeys(h.log)); failed != nil {
			err = failed
		} else if looked {
			entry, err = s.meta.Get(ctx, groupKey(h.log, group))
		}
	}
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return storedGroup{}, 0, fmt.Errorf("read group %q of hub %q: %w", group, h.Name, err)
	}
	if err == nil {
		stored, err := decodeGroup(entry)
		return stored, entry.Revision, err
	}
	// The group may differ only in case: that is the likely mistake of those who come from a
	// service where case does not matter. Without a list there is no such hint.
	missing := groupNotFound(h, group)
	others, _ := s.list(ctx, h)
	for _, other := range others {
		if fold(other.Name) == fold(group) {
			missing.Similar = other.Name
		}
	}
	return storedGroup{}, 0, missing
}

// put lets the store decide who is first. It finishes the deletion of a group of that name.
func (s groupStore) put(ctx context.Context, h *hub, g storedGroup) (revision meta.Revision, err error) {
	err = mirror.Uncontested(ctx, func() (conflict error) {
		revision, conflict = s.meta.CompareAndSet(ctx, groupKey(h.log, g.Name), 0, encode(g))
		if !errors.Is(conflict, meta.ErrConflict) {
			return conflict
		}
		there, at, err := s.read(ctx, h, g.Name)
		var missing *NotFoundError
		switch {
		case errors.As(err, &missing):
			return conflict
		case err != nil:
			return err
		case !there.deleting():
			return ErrGroupExists
		}
		if err := s.finishDeletion(ctx, h.log, there, at); err != nil {
			return fmt.Errorf("finish deletion of the group that had this name: %w", err)
		}
		return conflict
	})
	return revision, err
}

// delete marks a group and removes what is stored of it.
func (s groupStore) delete(ctx context.Context, h *hub, group string) error {
	stored, revision, err := s.read(ctx, h, group)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout) // as for hubs
	defer cancel()
	if !stored.deleting() {
		stored.State = stateDeleting
		if revision, err = s.meta.CompareAndSet(ctx, groupKey(h.log, group), revision, encode(stored)); err != nil {
			return fmt.Errorf("delete group %q of hub %q: %w", group, h.Name, err)
		}
	}
	if err := s.finishDeletion(ctx, h.log, stored, revision); err != nil {
		return fmt.Errorf("group %q of hub %q is deleted but still takes up storage, delete it again to free that: %w", group, h.Name, err)
	}
	return nil
}

// finishDeletion does what is left of a deletion that was decided. Each step may be done twice, or
// by two nodes at once: the records' keys are never used again. The group's own key goes last.
func (s groupStore) finishDeletion(ctx context.Context, log string, marked storedGroup, revision meta.Revision) error {
	if err := deleteEntries(ctx, s.meta, recordKeys(log, marked.incarnation())); err != nil {
		return err
	}
	if err := s.deleteSlots(ctx, log, marked.Name); err != nil {
		return err
	}
	key := groupKey(log, marked.Name)
	if err := s.meta.Delete(ctx, key, revision); err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// deleteSlots deletes the slots of a group that nobody reads for. Receivers go on although the group is
// deleted: the last of them deletes theirs.
func (s groupStore) deleteSlots(ctx context.Context, log, group string) error {
	entries, err := s.meta.List(ctx, slotKeys(log, group))
	if err != nil {
		return fmt.Errorf("list slots of group %q: %w", group, err)
	}
	for _, e := range entries {
		if slot, err := decodeSlot(e); err != nil || !slot.empty() {
			continue
		}
		if err := s.meta.Delete(ctx, e.Key, e.Revision); err != nil && !mirror.GoneOrChanged(err) {
			return fmt.Errorf("delete %s: %w", e.Key, err)
		}
	}
	return nil
}
