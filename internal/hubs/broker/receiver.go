package broker

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ReceiverConfig says who wants to read a partition for a group.
type ReceiverConfig struct {
	Hub, Group, Partition string
	At                    eventlog.Position
	// Epoch nil: a receiver without one.
	Epoch *int64
	// Name is what others see of it in errors; empty if it has none.
	Name string
	// Evict is called once when another receiver takes the slot, at whichever node, before that one's
	// Receive returns, with no lock held; nothing may be given to this one's client once it has returned. It may be
	// called a moment before Receive returns to the caller, and a moment after Close did: the other
	// came at the same time. It must not ask for the same slot again. Nil: nobody is notified.
	Evict func(err *EvictedError)
}

// Receiver has a slot at a partition, with a cursor of its own.
type Receiver struct {
	// Cursor reads the partition; whoever uses it closes it.
	Cursor eventlog.Cursor
	// Reads counts the events that the receiver was given; whoever gives them adds to it.
	Reads prometheus.Counter

	claim  claim
	evict  func(*EvictedError)
	of     *hub
	number int
	frames *Frames

	slots *slots
	at    slotID
	// seated is guarded by slots.mu.
	seated bool

	// What follows is for slots that several nodes share; shared is nil otherwise. id names the
	// receiver there, gone is closed when nothing more goes to its client, revision is that of the
	// write by which it got the slot (zero: none yet; guarded by slots.mu), term the node's in which
	// it was last confirmed.
	shared   *sharing
	id       string
	gone     chan struct{}
	revision meta.Revision
	term     atomic.Uint64
}

// Receive takes a slot. Errors: *EpochError, *ReceiverQuotaError, *NotFoundError,
// *eventlog.PositionError, the engine's.
//
// The cursor comes first and the slot last: who cannot read evicts nobody, and one that
// begins at the end misses nothing that is published from then on.
func (b *Broker) Receive(ctx context.Context, cfg ReceiverConfig) (*Receiver, error) {
	h, number, err := b.locate(ctx, cfg.Hub, cfg.Partition)
	if err != nil {
		return nil, err
	}
	group, err := b.groups.get(ctx, h, cfg.Group)
	if err != nil {
		return nil, err
	}
	cursor, err := h.cursor(ctx, b, number, cfg.At)
	if err != nil {
		return nil, b.gone(h, fmt.Errorf("read %s/%s: %w", h.Name, cfg.Partition, err))
	}
	r := &Receiver{
		Cursor: cursor, Reads: b.metrics.reads.WithLabelValues(h.Name, group.Name), claim: claim{cfg.Name, cfg.Epoch}, evict: cfg.Evict,
		of: h, number: number, frames: b.Frames,
		slots: b.slots, at: slotID{log: h.log, group: group.Name, partition: cfg.Partition},
	}
	if err := b.slots.take(ctx, r); err != nil {
		cursor.Close()
		return nil, err
	}
	return r, nil
}

// Close frees the slot at once. Safe twice, also after an eviction. It leaves the cursor
// open: the slot is to be freed when nothing more goes to the client.
func (r *Receiver) Close() { r.slots.free(r) }

// Newest gives the newest event of the receiver's partition, as far as this node knows, for who has
// to show it beside each delivery (H10). It costs no I/O, and its Bytes are left out. Where there are transactions it
// may be behind by a moment.
func (r *Receiver) Newest() PartitionInfo {
	h := r.of
	bounds := h.begins(r.number, h.partitions[r.number].Peek())
	info := partitionInfo(h.Name, r.at.partition, bounds, now())
	t := h.tails[r.number].tail.Load()
	if t == nil {
		return info
	}
	known := t.current(bounds)
	if known == nil {
		r.frames.lookAgain(t, h, r.number)
		if known = t.known.Load(); known == nil {
			known = &reach{last: eventlog.Sequence(t.from.Load()) - 1, time: bounds.LastTime}
		}
	}
	return info.upTo(*known)
}
