package box

import (
	"container/heap"
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// way reads a partition from its beginning to where its end was when it began.
type way struct {
	box            *Box
	hub, partition string
	cursor         eventlog.Cursor
	end            int64 // not included
	page           []item
	spans          spans // that are passed over
}

// ways are those of all partitions that have anything, from a time on. first is where each begins, as far as it keeps events. The
// caller closes them.
func (b *Box) ways(ctx context.Context, h broker.Hub, q Query, marks marks) (all *waysOn, err error) {
	all = &waysOn{first: map[string]int64{}}
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	for _, id := range h.PartitionIDs() {
		info, err := b.cfg.Broker.Partition(ctx, h.Name, id)
		if err != nil {
			return all, err
		}
		all.first[id] = int64(info.First)
		if info.LastTime.After(all.newest) {
			all.newest = info.LastTime
		}
		if info.Empty || info.LastTime.Before(q.Since) {
			continue
		}
		w := &way{box: b, hub: h.Name, partition: id, end: int64(info.Last) + 1}
		if !q.Redriven {
			w.spans = marks.of(id)
		}
		all.all = append(all.all, w)
		at := eventlog.Earliest()
		if !q.Since.IsZero() {
			at = eventlog.Since(q.Since)
		}
		if err := w.moveTo(ctx, at); err != nil {
			return all, err
		}
	}
	return all, all.begin(ctx)
}

func (w *way) moveTo(ctx context.Context, at eventlog.Position) error {
	cursor, err := w.box.cfg.Broker.Cursor(ctx, w.hub, broker.DefaultGroup, w.partition, at)
	if err != nil {
		return err
	}
	w.close()
	w.cursor = cursor
	return nil
}

func (w *way) close() {
	if w.cursor != nil {
		_ = w.cursor.Close()
		w.cursor = nil
	}
}

// load reads on if nothing is at hand. At the end nothing is.
func (w *way) load(ctx context.Context) error {
	for len(w.page) == 0 && int64(w.cursor.At()) < w.end {
		if err := w.passOver(ctx); err != nil {
			return err
		}
		run, err := w.cursor.TryNext(ctx)
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			w.end = int64(w.cursor.At())
			return nil
		}
		w.page = items(w.page[:0], run, w.end)
	}
	return nil
}

// worthwhile is how many poison events have to be passed over for it to be cheaper than to read them.
const worthwhile = 100

// passOver goes behind a long stretch of poison events that were redriven: if the last of them is older than its mark, all are.
func (w *way) passOver(ctx context.Context) error {
	reference := int64(w.cursor.At())
	m, found := w.spans.find(reference)
	if !found || m.Last-reference < worthwhile {
		return nil
	}
	last := min(m.Last, w.end-1)
	if err := w.moveTo(ctx, eventlog.At(eventlog.Sequence(last))); err != nil {
		return err
	}
	run, err := w.cursor.TryNext(ctx)
	if err != nil {
		return err
	}
	if _, redriven := w.spans.at(last, run.Time); redriven && len(run.Events) > 0 {
		return w.moveTo(ctx, eventlog.After(eventlog.Sequence(last)))
	}
	w.spans = nil // they are about others
	return w.moveTo(ctx, eventlog.At(eventlog.Sequence(reference)))
}

// waysOn is a heap with the oldest event on top.
type waysOn struct {
	all    []*way
	first  map[string]int64 // by partition
	newest time.Time        // when the newest event of all came
}

// begin reads the first of each.
func (w *waysOn) begin(ctx context.Context) error {
	var some []*way
	for _, one := range w.all {
		if err := one.load(ctx); err != nil {
			return err
		}
		if len(one.page) > 0 {
			some = append(some, one)
		} else {
			one.close()
		}
	}
	w.all = some
	heap.Init(w)
	return nil
}

// next gives the oldest event of all and its partition; false at the end.
func (w *waysOn) next(ctx context.Context) (partition string, i item, ok bool, err error) {
	if len(w.all) == 0 {
		return "", item{}, false, nil
	}
	one := w.all[0]
	i, one.page = one.page[0], one.page[1:]
	if err := one.load(ctx); err != nil {
		return "", item{}, false, err
	}
	if len(one.page) == 0 {
		one.close()
		heap.Pop(w)
	} else {
		heap.Fix(w, 0)
	}
	return one.partition, i, true, nil
}

func (w *waysOn) close() {
	for _, one := range w.all {
		one.close()
	}
}

func (w *waysOn) Len() int { return len(w.all) }
func (w *waysOn) Less(i, j int) bool {
	return w.all[i].page[0].time.Before(w.all[j].page[0].time)
}
func (w *waysOn) Swap(i, j int) { w.all[i], w.all[j] = w.all[j], w.all[i] }
func (w *waysOn) Push(x any)    { w.all = append(w.all, x.(*way)) }
func (w *waysOn) Pop() any {
	last := len(w.all) - 1
	x := w.all[last]
	w.all = w.all[:last]
	return x
}
