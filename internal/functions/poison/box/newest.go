package box

import (
	"container/heap"
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// newest gives chosen poison events of a hub, the newest first, until take has had enough, or look,
// which is asked before every event that is looked at, with its size, and may be nil.
func (b *Box) newest(ctx context.Context, hub string, q Query, take func(Entry) bool, look func(bytes int) bool) error {
	h, err := b.cfg.Broker.Hub(hub)
	if err != nil {
		return err
	}
	return b.newestOf(ctx, h, h.PartitionIDs(), q, take, look)
}

func (b *Box) newestOf(ctx context.Context, h broker.Hub, partitions []string, q Query, take func(Entry) bool, look func(bytes int) bool) error {
	marks, err := b.marks(ctx, h)
	if err != nil {
		return err
	}
	ways, err := b.waysBack(ctx, h, partitions)
	if err != nil {
		return err
	}
	for ways.Len() > 0 {
		w := ways.top()
		if len(w.page) == 0 {
			if err := w.load(ctx); err != nil {
				return err
			}
			ways.settle(w.over())
			continue
		}
		if look != nil && !look(len(w.page[len(w.page)-1].message)) {
			return nil
		}
		if e, chosen := w.next(&q, marks.of(w.partition).Marks()); chosen && !take(e) {
			return nil
		}
		ways.settle(w.over())
	}
	return nil
}

// next gives the newest poison event of a page, if it is one of those asked for. What need not be
// looked at behind it is left out.
func (w *wayBack) next(q *Query, marks setaside.Marks) (Entry, bool) {
	last := len(w.page) - 1
	i := w.page[last]
	w.page, w.bound = w.page[:last], i.time
	redriven, wasRedriven := marks.Redriven(i.sequence, i.time)
	switch {
	case i.time.Before(q.Since):
		w.page, w.end = nil, w.first // all that is behind it is older
		return Entry{}, false
	case q.late(i.time):
		return Entry{}, false
	case wasRedriven && !q.Redriven:
		// So was all that is before it in its range, which is older, and no younger than its mark.
		for len(w.page) > 0 && w.page[len(w.page)-1].sequence >= redriven.First {
			w.page = w.page[:len(w.page)-1]
		}
		w.end = min(w.end, max(redriven.First, w.first))
		return Entry{}, false
	}
	e, ok := i.entry(w.hub, w.partition, redriven)
	return e, ok && q.chooses(&e.Record)
}

// wayBack reads a partition from its end, page by page. Who wants only the last few has read only
// them.
type wayBack struct {
	box            *Box
	hub, partition string
	// What is unread is from first to before end; bound is when the newest of it was put there, or
	// later.
	first, end int64
	bound      time.Time
	page       []item // oldest first; the last is given next
	// step is how many events the next page has, most what it may grow to: so many as are a few
	// megabytes.
	step, most int64
}

// Pages of the way back.
const (
	firstStep = 64
	maxStep   = 2048
	pageBytes = 4 << 20
)

// waysBack is one for each partition that has anything, the one with the newest event on top.
func (b *Box) waysBack(ctx context.Context, h broker.Hub, partitions []string) (*ways[*wayBack], error) {
	all := &ways[*wayBack]{before: func(a, b *wayBack) bool { return a.newest().After(b.newest()) }}
	for _, id := range partitions {
		info, err := b.cfg.Broker.Partition(ctx, h.Name, id)
		if err != nil {
			return nil, err
		}
		if info.Empty {
			continue
		}
		count := int64(info.Last-info.First) + 1
		average := max(info.Bytes/count, 1)
		most := min(max(pageBytes/average, 1), maxStep)
		heap.Push(all, &wayBack{
			box: b, hub: h.Name, partition: id, first: int64(info.First), end: int64(info.Last) + 1, bound: info.LastTime,
			step: min(firstStep, most), most: most,
		})
	}
	return all, nil
}

func (w *wayBack) over() bool { return len(w.page) == 0 && w.end <= w.first }

// newest is when the next event was put there, or later.
func (w *wayBack) newest() time.Time {
	if last := len(w.page) - 1; last >= 0 {
		return w.page[last].time
	}
	return w.bound
}

// load reads the page before what was read.
func (w *wayBack) load(ctx context.Context) error {
	from := max(w.first, w.end-w.step)
	reader := w.box.reader(w.hub, w.partition, from)
	defer reader.Close()
	w.page = w.page[:0]
	for int64(reader.At()) < w.end {
		run, damage, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		if damage == nil && len(run.Events) == 0 {
			break
		}
		w.page = items(w.page, run, w.end)
	}
	w.end, w.step = from, min(2*w.step, w.most)
	return nil
}

// reader reads a partition of a hub as any reader would. What is damaged is passed.
func (b *Box) reader(hub, partition string, from int64) *eventlog.Reader {
	return eventlog.NewReader(func(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
		return b.cfg.Broker.Cursor(ctx, hub, broker.DefaultGroup, partition, at)
	}, eventlog.Sequence(from))
}

// ways is a heap of ways through partitions, by what comes next in each.
type ways[W any] struct {
	all    []W
	before func(a, b W) bool
}

func (w *ways[W]) top() W { return w.all[0] }

// settle puts the one on top, which has changed, where it belongs; one that is over is left out.
func (w *ways[W]) settle(over bool) {
	if over {
		heap.Pop(w)
	} else {
		heap.Fix(w, 0)
	}
}

// Len, Less, Swap, Push and Pop are heap's.
func (w *ways[W]) Len() int           { return len(w.all) }
func (w *ways[W]) Less(i, j int) bool { return w.before(w.all[i], w.all[j]) }
func (w *ways[W]) Swap(i, j int)      { w.all[i], w.all[j] = w.all[j], w.all[i] }
func (w *ways[W]) Push(x any)         { w.all = append(w.all, x.(W)) }
func (w *ways[W]) Pop() any {
	last := len(w.all) - 1
	x := w.all[last]
	w.all = w.all[:last]
	return x
}
