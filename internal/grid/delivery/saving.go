package delivery

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/shards"
)

// shardSaves is how many values of a shard are saved a second at most, the stalest first: all nodes
// of a yard share one store. One machine saves all that have changed.
const shardSaves = 4

// saveAll writes what has changed, and reports whether all is written. What is not is tried again,
// or, with a time, left for the next second where a shard has had its share.
func (r *reconciler) saveAll(ctx context.Context, now time.Time) (all bool) {
	values := make(map[cursorRef]map[*holding][]byte)
	for _, src := range r.sources {
		for _, f := range src.feeds {
			if f.changed.Swap(false) {
				values[cursorRef{src.id, f.partition}] = r.noteUnsaved(src, f.partition, now)
			}
		}
	}
	all = true
	for _, h := range r.holdings {
		for i, ref := range h.stalest() {
			if h.held != nil && !now.IsZero() && i == shardSaves {
				break
			}
			if values[ref] == nil {
				values[ref] = r.valuesOf(ref)
			}
			if !h.save(ctx, ref, r.labelOf(ref), values[ref][h]) {
				break
			}
		}
		all = all && len(h.unsaved) == 0
	}
	if !all && ctx.Err() == nil {
		nudge(r.s.unsaved)
	}
	return all
}

// noteUnsaved notes for each holding that the value of a partition may have changed, and gives the
// values.
func (r *reconciler) noteUnsaved(src *source, partition int, now time.Time) map[*holding][]byte {
	ref := cursorRef{src.id, partition}
	values := r.valuesOf(ref)
	for h := range values {
		if _, noted := h.unsaved[ref]; !noted {
			h.unsaved[ref] = now
		}
	}
	return values
}

// stalest are the values that may have changed, those first that have waited longest.
func (h *holding) stalest() []cursorRef {
	refs := slices.Collect(maps.Keys(h.unsaved))
	if h.held != nil {
		slices.SortFunc(refs, func(a, b cursorRef) int {
			return cmp.Or(h.unsaved[a].Compare(h.unsaved[b]), cmp.Compare(a.source, b.source), cmp.Compare(a.partition, b.partition))
		})
	}
	return refs
}

func (r *reconciler) labelOf(ref cursorRef) string {
	if src := r.sources[ref.source]; src != nil {
		return src.label
	}
	return ref.source
}

// save writes one value; nil: there is none any more. It reports false where there is no use in
// writing others: the shard is lost.
func (h *holding) save(ctx context.Context, ref cursorRef, label string, value []byte) bool {
	if value == nil {
		delete(h.unsaved, ref)
		return true
	}
	err := h.cursors.save(ctx, ref, value)
	switch {
	case err == nil:
		delete(h.unsaved, ref)
	case errors.Is(err, shards.ErrLost):
		h.lose()
		return false
	case ctx.Err() == nil:
		h.s.log.Warn("the cursors of subscriptions cannot be saved, trying again: after a crash events would be repeated",
			"source", label, "partition", ref.partition, "error", err)
	}
	return true
}

// valuesOf gives the values of a partition, by holding: the marks of its lanes, those that were found
// and that no lane has taken over yet, and those of deleted subscriptions of which something is left
// that has to be removed.
func (r *reconciler) valuesOf(ref cursorRef) map[*holding][]byte {
	values := make(map[*holding][]byte, 1)
	src := r.sources[ref.source]
	if src == nil {
		return values
	}
	add := func(h *holding, id string, mark int64) {
		if values[h] == nil {
			values[h] = beginCursors(h.cursors.epoch, len(src.lanes))
		}
		if id != "" {
			values[h] = appendCursor(values[h], id, mark)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(src.lanes)) {
		l := src.lanes[id]
		add(l.holding, id, l.low(ref.partition))
	}
	for _, h := range r.holdings {
		record := h.cursors.records[ref]
		if record != nil {
			add(h, "", 0)
			for _, id := range slices.Sorted(maps.Keys(record.marks)) {
				add(h, id, record.marks[id])
			}
		}
		for id, source := range h.unforgotten {
			if source == src.id && !record.has(id) {
				add(h, id, 0)
			}
		}
	}
	return values
}

// has reports whether a mark was found that no lane has taken over. The record may be nil.
func (record *cursorRecord) has(id string) bool {
	if record == nil {
		return false
	}
	_, ok := record.marks[id]
	return ok
}

// saveMoved writes where the lanes stand that were taken out of the feeds. Nobody works for them any
// more.
func (h *holding) saveMoved(ctx context.Context) {
	values := make(map[cursorRef][]byte)
	for ref, record := range h.cursors.records {
		value := beginCursors(h.cursors.epoch, len(record.marks))
		for _, id := range slices.Sorted(maps.Keys(record.marks)) {
			value = appendCursor(value, id, record.marks[id])
		}
		values[ref] = value
	}
	slices.SortFunc(h.moved, func(a, b *lane) int { return cmp.Compare(a.id, b.id) })
	for _, l := range h.moved {
		for p := range l.tracks {
			ref := cursorRef{l.source.id, p}
			if values[ref] == nil {
				values[ref] = beginCursors(h.cursors.epoch, len(h.moved))
			}
			values[ref] = appendCursor(values[ref], l.id, l.low(p))
		}
	}
	for id, source := range h.unforgotten {
		if ref := (cursorRef{source, 0}); values[ref] != nil && !h.cursors.records[ref].has(id) {
			values[ref] = appendCursor(values[ref], id, 0)
		}
	}
	for ref, value := range values {
		if !h.save(ctx, ref, ref.source, value) {
			return
		}
	}
}
