package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Group is a consumer group: a name under which readers keep positions of their own.
type Group struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

func defaultGroup(h *hub) Group { return Group{Name: DefaultGroup, Created: h.Created} }

// Groups gives the hub's groups: $Default, then the others by name.
func (b *Broker) Groups(ctx context.Context, hub string) ([]Group, error) {
	h, err := b.find(ctx, hub)
	if err != nil {
		return nil, err
	}
	others, err := b.groups.list(ctx, h)
	if err != nil {
		return nil, err
	}
	return append([]Group{defaultGroup(h)}, others...), nil
}

// Group gives one group of a hub; a *NotFoundError if there is none. Case matters,
// except for $Default.
func (b *Broker) Group(ctx context.Context, hub, group string) (Group, error) {
	h, err := b.find(ctx, hub)
	if err != nil {
		return Group{}, err
	}
	stored, err := b.groups.get(ctx, h, group)
	return stored.Group, err
}

// CreateGroup makes a consumer group. If it is there already, as $Default always is,
// the error is ErrGroupExists.
func (b *Broker) CreateGroup(ctx context.Context, hub, group string) (Group, error) {
	h, err := b.find(ctx, hub)
	if err != nil {
		return Group{}, err
	}
	if isDefaultGroup(group) {
		return Group{}, fmt.Errorf("create group %q of hub %q: %w: every hub has it", group, h.Name, ErrGroupExists)
	}
	if !wellFormed(group) {
		return Group{}, fmt.Errorf("create group of hub %q: consumer group %.64q: %w: %s", h.Name, group, ErrInvalidName, nameRule)
	}
	if err := checkNewGroup(group); err != nil {
		if _, missing := b.Group(ctx, hub, group); missing != nil { // one from before keeps its name
			return Group{}, fmt.Errorf("create group of hub %q: consumer group %w", h.Name, err)
		}
	}
	g := storedGroup{Group: Group{Name: group, Created: now()}, ID: strings.ToLower(rand.Text())}
	revision, err := b.groups.put(ctx, h, g)
	if err != nil {
		return Group{}, fmt.Errorf("create group %q of hub %q: %w", group, h.Name, err)
	}
	if b.wasDeleted(ctx, h) {
		if err := b.meta.Delete(ctx, groupKey(h.log, group), revision); err != nil && !mirror.GoneOrChanged(err) {
			return Group{}, fmt.Errorf("withdraw group %q of deleted hub %q: %w", group, h.Name, err)
		}
		return Group{}, hubNotFound(h.Name)
	}
	b.log.Info("group created", "hub", h.Name, "group", group)
	b.notes.Note(ctx, activity.Entry{Kind: "group.created", Object: activity.Path("hubs", h.Name, "groups", group)})
	return g.Group, nil
}

// wasDeleted reports whether the hub was deleted under us: who has created something of it asks,
// since the deletion may have listed what there is just before, and would leave it behind for ever.
func (b *Broker) wasDeleted(ctx context.Context, h *hub) bool {
	b.refresh(ctx, hubsPrefix)
	return b.seemsDeleted(ctx, h)
}

// refresh is called between writing a record and looking for the deletion that may have missed it.
// The other side does so between its mark and its list (deleteEntries), so at least one sees the
// other. Where that fails the look is as good as it can be.
func (b *Broker) refresh(ctx context.Context, prefix string) {
	if err := b.meta.Fresh(ctx, prefix); err != nil {
		b.log.Warn("whether a hub or group was deleted meanwhile is not certain, a record of it may stay behind", "error", err)
	}
}

// seemsDeleted is for who has changed what the deletion knows of anyway.
func (b *Broker) seemsDeleted(ctx context.Context, h *hub) bool {
	there, err := b.read(ctx, h.Name)
	if err != nil {
		return errors.Is(err, meta.ErrNotFound)
	}
	return there.Value.deleting() || there.Value.Log != h.log
}

// DeleteGroup deletes a consumer group with what is recorded of it, for good; $Default is
// ErrDefaultGroup. Readers that use it go on until they close.
//
// As with hubs it is decided when the group is marked, and whatever interrupts the rest,
// the next who opens a broker, creates a group of that name or deletes it again finishes it.
func (b *Broker) DeleteGroup(ctx context.Context, hub, group string) error {
	h, err := b.find(ctx, hub)
	if err != nil {
		return err
	}
	if isDefaultGroup(group) {
		return fmt.Errorf("delete group %q of hub %q: %w", group, h.Name, ErrDefaultGroup)
	}
	if err := mirror.Uncontested(ctx, func() error { return b.groups.delete(ctx, h, group) }); err != nil {
		return err
	}
	b.metrics.reads.DeleteLabelValues(h.Name, group)
	b.log.Info("group deleted", "hub", h.Name, "group", group)
	b.notes.Note(ctx, activity.Entry{Kind: "group.deleted", Object: activity.Path("hubs", h.Name, "groups", group)})
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
			continue // what cannot be read is reported to who asks for it
		}
		log, _, _ := strings.Cut(strings.TrimPrefix(e.Key, groupsPrefix), "/")
		if err := b.groups.finishDeletion(ctx, log, g, e.Revision); err != nil {
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

// GroupRecords says where a service keeps what it knows of a consumer group: in the meta
// store, under a prefix that no earlier or later hub or group of the same name has. The broker
// deletes all that is there with the group and with the hub.
type GroupRecords struct {
	Hub   Hub
	Group Group
	// Prefix ends in '/'.
	Prefix string

	log, id string
}

// defaultIncarnation stands for $Default, which is as old as its hub. No other group's id
// has a '$'.
const defaultIncarnation = "$default"

// GroupRecords finds a group's records; a *NotFoundError if there is no such hub or group.
func (b *Broker) GroupRecords(ctx context.Context, hub, group string) (GroupRecords, error) {
	h, err := b.find(ctx, hub)
	if err != nil {
		return GroupRecords{}, err
	}
	stored, err := b.groups.get(ctx, h, group)
	if err != nil {
		return GroupRecords{}, err
	}
	id := stored.incarnation()
	return GroupRecords{Hub: h.Hub, Group: stored.Group, Prefix: recordKeys(h.log, id), log: h.log, id: id}, nil
}

// GroupGone reports whether the hub or the group was deleted since its records were found. Who
// creates a record asks afterwards and takes it back if so: the deletion may have listed the
// records just before, and would leave it behind for ever.
func (b *Broker) GroupGone(ctx context.Context, r GroupRecords) bool {
	if b.wasDeleted(ctx, &hub{Hub: r.Hub, log: r.log}) {
		return true
	}
	if r.id == defaultIncarnation {
		return false
	}
	b.refresh(ctx, groupKeys(r.log))
	entry, err := b.meta.Get(ctx, groupKey(r.log, r.Group.Name))
	if err != nil {
		return errors.Is(err, meta.ErrNotFound)
	}
	stored, err := decodeGroup(entry)
	return err == nil && (stored.deleting() || stored.incarnation() != r.id)
}
