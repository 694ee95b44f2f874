package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Events can be deleted from the front of a partition by number, as Kafka's clients do with DeleteRecords. Engines remove
// whole segments or blocks, when they get to it; so where a partition begins stands in the hub's definition, and no reader
// is given anything from before. It is the one that counts, and Trim only gives the storage back.

// EndOfPartition stands for the number behind the newest event in DeleteBefore.
const EndOfPartition eventlog.Sequence = -1

// DeleteBefore deletes the events of partitions of a hub that are below a number each, and gives the numbers at which
// these begin then. When it returns that is durable, and nobody who begins to read at this node is given any of them;
// at others as soon as these have heard of it. One who reads already may be given some more. Errors: *NotFoundError,
// *eventlog.PositionError where a number is beyond the end, and the stores'. After an error nothing was deleted, or all.
func (f *Frames) DeleteBefore(ctx context.Context, name string, below map[int]eventlog.Sequence) (map[int]eventlog.Sequence, error) {
	b := f.broker
	h, err := b.find(ctx, name)
	if err == nil {
		err = h.broken
	}
	if err != nil {
		return nil, err
	}
	starts := make(map[int]eventlog.Sequence)
	for number, at := range below {
		if number < 0 || number >= h.Partitions {
			return nil, &NotFoundError{Kind: KindPartition, Hub: h.Name, Name: strconv.Itoa(number), Partitions: h.Partitions}
		}
		first, next, err := f.span(ctx, h, number)
		if err != nil {
			return nil, err
		}
		switch {
		case at == EndOfPartition:
			at = next
		case at < 0 || at > next:
			return nil, &eventlog.PositionError{Asked: at, Last: next - 1}
		}
		starts[number] = max(at, first)
	}
	_, err = b.definitions.Change(ctx, hubKey(fold(name)), func(d *definition) error {
		if d.deleting() || d.Log != h.log {
			return meta.ErrNotFound
		}
		changed := maps.Clone(d.Starts)
		if changed == nil {
			changed = make(map[int]eventlog.Sequence)
		}
		for number, at := range starts {
			starts[number] = max(at, changed[number])
			if at > 0 {
				changed[number] = starts[number]
			}
		}
		if maps.Equal(changed, d.Starts) {
			return mirror.ErrUnchanged
		}
		d.Starts = changed
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) {
		return nil, hubNotFound(name)
	}
	if err != nil {
		return nil, fmt.Errorf("delete events of hub %q: %w", name, err)
	}
	trim(ctx, b, h, starts)
	return starts, nil
}

// trim has the engine give back the storage of what was deleted. Where it cannot the next start tries again.
func trim(ctx context.Context, b *Broker, h *hub, starts map[int]eventlog.Sequence) {
	for _, number := range slices.Sorted(maps.Keys(starts)) {
		if err := h.partitions[number].Trim(ctx, starts[number]); err != nil && !errors.Is(err, eventlog.ErrRemoved) && ctx.Err() == nil {
			b.log.Warn("deleted events still take up storage, the next start tries again", "hub", h.Name, "partition", number, "error", err)
		}
	}
}

// trimAll does so for all hubs: engines need not remember it.
func trimAll(ctx context.Context, b *Broker) {
	for _, h := range b.hubs.all() {
		if ctx.Err() == nil && h.broken == nil && len(h.starts) > 0 {
			trim(ctx, b, h, h.starts)
		}
	}
}

// Looking for partitions that begin beyond their end: how many are looked at together, how long a start waits for storage
// that does not answer, and how long Run does before it asks again.
const (
	startsAtOnce = 64
	startsWait   = 30 * time.Second
	startsRest   = 10 * time.Second
)

// lowerStarts brings the numbers at which partitions begin down to their ends. A log may have lost its end with the power,
// where syncing is not each append's, and the definition, which is always synced, says that the partition begins beyond it:
// what is stored there from now on must not count as deleted. So it is done before anything is. It gives the partitions of
// which that is not known, since their storage does not answer: nothing can be stored there now either.
func lowerStarts(ctx context.Context, b *Broker, of func(eventlog.PartitionID) bool) (unknown map[eventlog.PartitionID]bool, err error) {
	unknown = make(map[eventlog.PartitionID]bool)
	type begun struct {
		hub    *hub
		number int
	}
	var all []begun
	for _, h := range b.hubs.all() {
		for number := range h.starts {
			if h.broken == nil && of(eventlog.PartitionID{Log: h.log, Number: number}) {
				all = append(all, begun{h, number})
			}
		}
	}
	patient, stop := context.WithTimeout(ctx, startsWait)
	defer stop()
	ends, errs := make([]eventlog.Sequence, len(all)), make([]error, len(all))
	parallel.Each(len(all), startsAtOnce, func(i int) {
		bounds, err := all[i].hub.partitions[all[i].number].Sealed(patient)
		ends[i], errs[i] = bounds.Next, err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	beyond := make(map[*hub]map[int]eventlog.Sequence)
	for i, p := range all {
		switch {
		case errors.Is(errs[i], eventlog.ErrRemoved):
		case errs[i] != nil:
			b.log.Warn("whether a partition begins beyond its end is not known, trying again", "hub", p.hub.Name, "partition", p.number, "error", errs[i])
			unknown[eventlog.PartitionID{Log: p.hub.log, Number: p.number}] = true
		case ends[i] < p.hub.starts[p.number]:
			if beyond[p.hub] == nil {
				beyond[p.hub] = make(map[int]eventlog.Sequence)
			}
			beyond[p.hub][p.number] = ends[i]
		}
	}
	for h, ends := range beyond {
		if err := lower(ctx, b, h, ends); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// lower writes that partitions of a hub begin at their ends.
func lower(ctx context.Context, b *Broker, h *hub, ends map[int]eventlog.Sequence) error {
	_, err := b.definitions.Change(ctx, hubKey(fold(h.Name)), func(d *definition) error {
		if d.deleting() || d.Log != h.log {
			return mirror.ErrUnchanged
		}
		changed := maps.Clone(d.Starts)
		for number, end := range ends {
			if changed[number] == h.starts[number] { // else there was an end beyond, since
				changed[number] = end
			}
		}
		d.Starts = changed
		return nil
	})
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("hub %q begins beyond its end: %w", h.Name, err)
	}
	b.log.Warn("a hub has lost the newest of its events, after others were deleted", "hub", h.Name, "partitions", len(ends))
	return nil
}

// lowerLater does what a start left undone, once the storage answers.
func lowerLater(ctx context.Context, b *Broker) {
	tick := time.NewTicker(startsRest)
	defer tick.Stop()
	for left := b.unsealed; len(left) > 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		unknown, err := lowerStarts(ctx, b, func(id eventlog.PartitionID) bool { return left[id] })
		if err == nil {
			left = unknown
		} else if ctx.Err() == nil {
			b.log.Warn("a partition begins beyond its end, trying again", "error", err)
		}
	}
}

// begins gives the bounds of a partition without what was deleted.
func (h *hub) begins(number int, bounds eventlog.Bounds) eventlog.Bounds {
	bounds.First = min(max(bounds.First, h.starts[number]), bounds.Next)
	return bounds
}

// open opens a cursor that gives batches of every form, and nothing of what was deleted.
func (h *hub) open(ctx context.Context, number int, at eventlog.Position) (eventlog.Cursor, error) {
	cursor, err := h.partitions[number].Cursor(ctx, at)
	start := h.starts[number]
	if err != nil || cursor.At() >= start {
		return cursor, err
	}
	if err := cursor.Close(); err != nil {
		return nil, err
	}
	again, err := h.partitions[number].Cursor(ctx, eventlog.At(start))
	if ahead, ok := errors.AsType[*eventlog.PositionError](err); ok { // the end is all that there can be to read
		again, err = h.partitions[number].Cursor(ctx, eventlog.At(ahead.Last+1))
	}
	return again, err
}

// opener is open for one partition.
func (h *hub) opener(number int) func(context.Context, eventlog.Position) (eventlog.Cursor, error) {
	return func(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
		return h.open(ctx, number, at)
	}
}
