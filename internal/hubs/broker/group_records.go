package broker

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

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
	h, err := b.find(hub)
	if err != nil {
		return GroupRecords{}, err
	}
	r := GroupRecords{Hub: h.Hub, Group: defaultGroup(h), log: h.log, id: defaultIncarnation}
	if !isDefaultGroup(group) {
		stored, err := b.visibleGroup(ctx, h, group)
		if err != nil {
			return GroupRecords{}, err
		}
		r.Group, r.id = stored.Group, stored.incarnation()
	}
	r.Prefix = recordKeys(r.log, r.id)
	return r, nil
}

// GroupGone tells whether the hub or the group was deleted since its records were found. Who
// creates a record asks afterwards and takes it back if so: the deletion may have listed the
// records just before, and would leave it behind for ever.
func (b *Broker) GroupGone(ctx context.Context, r GroupRecords) bool {
	h := &hub{Hub: r.Hub, log: r.log}
	if b.wasDeleted(ctx, h) {
		return true
	}
	if r.id == defaultIncarnation {
		return false
	}
	entry, err := b.meta.Get(ctx, groupKey(r.log, r.Group.Name))
	if err != nil {
		return errors.Is(err, meta.ErrNotFound)
	}
	stored, err := decodeGroup(entry)
	return err == nil && (stored.deleting() || stored.incarnation() != r.id)
}
