package broker

import "context"

// ReceiverInfo is a receiver that has a slot now.
type ReceiverInfo struct {
	Partition string
	// Name is what it calls itself; empty if it has none.
	Name string
	// Epoch nil: a receiver without one.
	Epoch *int64
}

// Receivers lists who reads for a group, at whichever node, in order of the partitions. A
// *NotFoundError if there is no such hub or group.
func (b *Broker) Receivers(ctx context.Context, hub, group string) ([]ReceiverInfo, error) {
	h, err := b.find(ctx, hub)
	if err != nil {
		return nil, err
	}
	g, err := b.groups.get(ctx, h, group)
	if err != nil {
		return nil, err
	}
	var all []ReceiverInfo
	if b.slots.shared != nil {
		there, err := b.slots.shared.list(ctx, h.log, g.Name)
		for _, partition := range h.PartitionIDs() {
			all = append(all, there[partition]...)
		}
		return all, err
	}
	for _, partition := range h.PartitionIDs() {
		all = append(all, b.slots.present(slotID{log: h.log, group: g.Name, partition: partition})...)
	}
	return all, nil
}

// present lists who has the slot.
func (ps *slots) present(at slotID) (there []ReceiverInfo) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[at]
	if p == nil {
		return nil
	}
	for _, r := range p.seated {
		there = append(there, ReceiverInfo{Partition: at.partition, Name: r.claim.name, Epoch: r.claim.epoch})
	}
	return there
}

// Disconnect ends those receivers of a group's partition that have an epoch, at whichever node, for an
// operator, and tells how many there were: each keeps everybody with a lower one from the
// partition. They are notified when it returns. A *NotFoundError if there is no such partition or
// group.
func (b *Broker) Disconnect(ctx context.Context, hub, group, partition string) (int, error) {
	h, _, err := b.locate(ctx, hub, partition)
	if err != nil {
		return 0, err
	}
	g, err := b.groups.get(ctx, h, group)
	if err != nil {
		return 0, err
	}
	return b.slots.disconnect(ctx, slotID{log: h.log, group: g.Name, partition: partition})
}
