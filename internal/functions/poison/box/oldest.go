package box

import (
	"container/heap"
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// wayOn reads a partition from its beginning to where its end was when it began.
type wayOn struct {
	partition string
	reader    *eventlog.Reader
	end       int64 // not included
	page      []item
	marks     setaside.Marks // of those that are passed over
}

// waysOn are those of all partitions that have anything, the one with the oldest event on top.
type waysOn struct {
	ways[*wayOn]
	first  map[string]int64 // the oldest that each partition keeps
	newest time.Time        // when the newest event of all came
}

// waysOn begins the ways, from a query's time on. The caller closes them.
func (b *Box) waysOn(ctx context.Context, h broker.Hub, q Query, marks *marks) (*waysOn, error) {
	all := &waysOn{first: map[string]int64{}}
	all.before = func(a, b *wayOn) bool { return a.page[0].time.Before(b.page[0].time) }
	for _, id := range h.PartitionIDs() {
		info, err := b.cfg.Broker.Partition(ctx, h.Name, id)
		if err != nil {
			all.close()
			return nil, err
		}
		all.first[id] = int64(info.First)
		if info.LastTime.After(all.newest) {
			all.newest = info.LastTime
		}
		if info.Empty || info.LastTime.Before(q.Since) {
			continue
		}
		w := &wayOn{partition: id, reader: b.reader(h.Name, id, int64(info.First)), end: int64(info.Last) + 1}
		if !q.Redriven {
			w.marks = marks.of(id).Marks()
		}
		if !q.Since.IsZero() {
			err = w.reader.Seek(ctx, eventlog.Since(q.Since))
		}
		if err == nil {
			err = w.load(ctx)
		}
		if err != nil {
			w.reader.Close()
			all.close()
			return nil, err
		}
		if len(w.page) > 0 {
			heap.Push(all, w)
		}
	}
	return all, nil
}

// next gives the oldest event of all and its partition; false at the end.
func (w *waysOn) next(ctx context.Context) (partition string, i item, ok bool, err error) {
	if w.Len() == 0 {
		return "", item{}, false, nil
	}
	one := w.top()
	i, one.page = one.page[0], one.page[1:]
	if err := one.load(ctx); err != nil {
		return "", item{}, false, err
	}
	w.settle(len(one.page) == 0)
	return one.partition, i, true, nil
}

func (w *waysOn) close() {
	for _, one := range w.all {
		one.reader.Close()
	}
}

// load reads on if nothing is at hand. At the end nothing is.
func (w *wayOn) load(ctx context.Context) error {
	for len(w.page) == 0 && int64(w.reader.At()) < w.end {
		if err := w.passOver(ctx); err != nil {
			return err
		}
		run, damage, err := w.reader.Next(ctx)
		if err != nil {
			return err
		}
		if damage == nil && len(run.Events) == 0 {
			w.end = int64(w.reader.At())
		}
		w.page = items(w.page[:0], run, w.end)
	}
	if len(w.page) == 0 {
		w.reader.Close()
	}
	return nil
}

// worthwhile is how many poison events have to be passed over for it to be cheaper than to read
// them.
const worthwhile = 100

// passOver goes behind a long stretch of poison events that were redriven: if the last of them is
// older than its mark, all are.
func (w *wayOn) passOver(ctx context.Context) error {
	position := w.reader.At()
	redriven, found := w.marks.Redriven(int64(position), time.Time{})
	if !found || redriven.Last-int64(position) < worthwhile {
		return nil
	}
	last := min(redriven.Last, w.end-1)
	w.reader.MoveTo(eventlog.Sequence(last))
	run, _, err := w.reader.Next(ctx)
	if err != nil {
		return err
	}
	if _, still := w.marks.Redriven(last, run.Time); !still || len(run.Events) == 0 {
		w.marks = nil // they are about others
		last = int64(position) - 1
	}
	w.reader.MoveTo(eventlog.Sequence(last + 1))
	return nil
}
