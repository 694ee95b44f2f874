package broker

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// PartitionInfo is what there is to know of a partition at one moment.
type PartitionInfo struct {
	Hub, ID string
	// First and Last are the numbers of the oldest event kept and of the newest one that readers can be given.
	// Both are -1 before the first event; when retention has removed all, First is Last+1.
	First, Last eventlog.Sequence
	// Next is the number that the next event will get. It is Last+1 but where the newest numbers are those of
	// transactions that are not decided, or were aborted, or of what ends them.
	Next eventlog.Sequence
	// LastOffset is Last in decimal, LastTime when it was enqueued; zero before the first event.
	LastOffset string
	LastTime   time.Time
	// Empty: there is nothing to read now.
	Empty bool
	// Bytes is the storage in use.
	Bytes int64
	// Retrieved is when all this was so.
	Retrieved time.Time
}

// Partition tells what a partition holds.
func (b *Broker) Partition(ctx context.Context, hub, partition string) (PartitionInfo, error) {
	h, number, err := b.locate(ctx, hub, partition)
	if err != nil {
		return PartitionInfo{}, err
	}
	return b.look(ctx, h, number)
}

// End gives the number that the next event of a partition will get, proven as by
// eventlog.Partition's Sealed: for who is about to forget what it knows of that number and those
// behind it. Errors as for Partition.
func (b *Broker) End(ctx context.Context, hub, partition string) (eventlog.Sequence, error) {
	h, number, err := b.locate(ctx, hub, partition)
	if err != nil {
		return 0, err
	}
	bounds, err := h.partitions[number].Sealed(ctx)
	if err != nil {
		return 0, b.gone(h, fmt.Errorf("find the end of %s/%s: %w", h.Name, partition, err))
	}
	return bounds.Next, nil
}

// looksAtOnce bounds how many partitions of a hub are looked at together. The first look at each
// after a start goes to storage.
const looksAtOnce = 8

// Partitions tells what each partition of a hub holds, in order.
func (b *Broker) Partitions(ctx context.Context, hub string) ([]PartitionInfo, error) {
	h, err := b.find(ctx, hub)
	if err == nil {
		err = h.broken
	}
	if err != nil {
		return nil, err
	}
	all, errs := make([]PartitionInfo, h.Partitions), make([]error, h.Partitions)
	parallel.Each(h.Partitions, looksAtOnce, func(i int) { all[i], errs[i] = b.look(ctx, h, i) })
	return all, cmp.Or(errs...)
}

func (b *Broker) look(ctx context.Context, h *hub, number int) (PartitionInfo, error) {
	id := strconv.Itoa(number)
	info, err := lookAt(ctx, h, number, id)
	if err != nil {
		return PartitionInfo{}, b.gone(h, fmt.Errorf("read %s/%s: %w", h.Name, id, err))
	}
	return info, nil
}

func lookAt(ctx context.Context, h *hub, number int, id string) (PartitionInfo, error) {
	bounds, err := h.partitions[number].Bounds(ctx)
	if err != nil {
		return PartitionInfo{}, err
	}
	bounds = h.begins(number, bounds)
	info := partitionInfo(h.Name, id, bounds, now())
	t, err := h.tailOf(ctx, number, bounds)
	if t == nil || err != nil {
		return info, err
	}
	r, err := t.look(ctx, h, number, bounds)
	if err != nil {
		return PartitionInfo{}, err
	}
	return info.upTo(r), nil
}

func partitionInfo(hub, id string, bounds eventlog.Bounds, at time.Time) PartitionInfo {
	info := PartitionInfo{
		Hub:        hub,
		ID:         id,
		First:      bounds.First,
		Last:       bounds.Last(),
		Next:       bounds.Next,
		LastOffset: strconv.FormatInt(int64(bounds.Last()), 10),
		LastTime:   bounds.LastTime,
		Empty:      bounds.Empty(),
		Bytes:      bounds.Bytes,
		Retrieved:  at,
	}
	if info.Last == eventlog.NoSequence {
		info.First = eventlog.NoSequence
	}
	return info
}

// upTo gives what there is to know for who reads as far as is known that one can.
func (info PartitionInfo) upTo(r reach) PartitionInfo {
	info.Last, info.LastTime = max(r.last, info.First-1), r.time
	info.LastOffset = strconv.FormatInt(int64(info.Last), 10)
	info.Empty = info.Last < info.First
	if info.Last == eventlog.NoSequence {
		info.First, info.LastTime = eventlog.NoSequence, time.Time{}
	}
	return info
}

// Cursor opens a reader of a partition's events for a group. Groups have no part in what is
// read, only in who reads. Frames come as single events, those of transactions when these are committed: until then it
// is as at the end. What was aborted, and what ends transactions, are numbers without events. When the hub is deleted it answers
// eventlog.ErrRemoved, and eventlog.ErrForm where events are in a form that nobody translates.
//
// Errors: *NotFoundError, *eventlog.PositionError, and the engine's others.
func (b *Broker) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	h, number, err := b.locate(ctx, hub, partition)
	if err != nil {
		return nil, err
	}
	if _, err := b.groups.get(ctx, h, group); err != nil {
		return nil, err
	}
	cursor, err := h.cursor(ctx, b, number, at)
	if err != nil {
		return nil, b.gone(h, fmt.Errorf("read %s/%s: %w", h.Name, partition, err))
	}
	return cursor, nil
}

// cursor is where every reader of a hub's events gets its cursor.
func (h *hub) cursor(ctx context.Context, b *Broker, number int, at eventlog.Position) (eventlog.Cursor, error) {
	open := h.opener(number)
	at, err := h.stable(ctx, number, at)
	if err != nil {
		return nil, err
	}
	cursor, err := newCommitted(ctx, open, at, func() *Fates { return b.noting(h, number, newFates(open)) })
	if err != nil {
		return nil, err
	}
	cursor.met = func(at eventlog.Sequence) {
		if h.tails[number].tail.Load() == nil {
			// From the end on: what is not decided of what is before, the cursor tells when it gets there, and whoever
			// coordinates it.
			h.transacted(number, max(at, h.partitions[number].Peek().Next))
		}
	}
	return eventlog.Translated(cursor, b.translators), nil
}

// stable gives the position of who begins behind the newest event: that is before what is not decided yet, as with Kafka. What
// is committed later comes later.
func (h *hub) stable(ctx context.Context, number int, at eventlog.Position) (eventlog.Position, error) {
	if !at.IsLatest() {
		return at, nil
	}
	bounds, err := h.partitions[number].Bounds(ctx)
	if err != nil {
		return at, err
	}
	bounds = h.begins(number, bounds)
	t, err := h.tailOf(ctx, number, bounds)
	if t == nil || err != nil {
		return at, err
	}
	r, err := t.look(ctx, h, number, bounds)
	return eventlog.After(max(r.last, bounds.First-1)), err
}

// locate finds a hub and a partition of it by name.
func (b *Broker) locate(ctx context.Context, name, partition string) (h *hub, number int, err error) {
	if h, err = b.find(ctx, name); err != nil {
		return nil, 0, err
	}
	if number, err = h.partitionNumber(partition); err != nil {
		return nil, 0, err
	}
	return h, number, h.broken
}

// partitionNumber reads a partition's name: decimal, without sign or leading zeros, so
// that each partition has one name only.
func (h *hub) partitionNumber(id string) (int, error) {
	n := 0
	known := id != "" && len(id) <= 4 && (len(id) == 1 || id[0] != '0')
	for i := 0; known && i < len(id); i++ {
		known = '0' <= id[i] && id[i] <= '9'
		n = 10*n + int(id[i]-'0')
	}
	if !known || n >= h.Partitions {
		return 0, &NotFoundError{Kind: KindPartition, Hub: h.Name, Name: id, Partitions: h.Partitions}
	}
	return n, nil
}
