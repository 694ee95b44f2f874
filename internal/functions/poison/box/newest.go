package box

import (
	"container/heap"
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// newest gives chosen letters of a hub, the newest first, until take has had enough, or look, which is asked before every event that is
// looked at, with its size, and may be nil.
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
	for len(ways) > 0 {
		w := ways[0]
		if !w.loaded() {
			if err := w.load(ctx); err != nil {
				return err
			}
			ways.settle()
			continue
		}
		if look != nil && !look(len(w.page[len(w.page)-1].message)) {
			return nil
		}
		if e, chosen := w.next(&q, marks.of(w.partition)); chosen && !take(e) {
			return nil
		}
		ways.settle()
	}
	return nil
}

// next gives the newest poison event of a page, if it is one of those asked for. What need not be looked at behind it is left out.
func (w *wayBack) next(q *Query, marked spans) (Entry, bool) {
	i := w.pop()
	at, redriven := marked.at(i.sequence, i.time)
	switch {
	case i.time.Before(q.Since):
		w.drop() // all that is behind it is older
		return Entry{}, false
	case redriven && !q.Redriven:
		w.skip(marked.before(i.sequence))
		return Entry{}, false
	}
	e, ok := i.entry(w.hub, w.partition)
	e.WasRedriven, e.RedrivenAt = redriven, at
	return e, ok && q.chooses(&e.Record)
}

// wayBack reads a partition from its end, page by page. Who wants only the last few has read only them.
type wayBack struct {
	box            *Box
	hub, partition string
	// What is unread is from first to before end; bound is when the newest of it was put there, or later.
	first, end int64
	bound      time.Time
	page       []item // oldest first; the last is given next
	// step is how many events the next page has, most what it may grow to: so many as are a few megabytes.
	step, most int64
}

// Pages of the way back.
const (
	firstStep = 64
	maxStep   = 2048
	pageBytes = 4 << 20
)

// waysBack is one for each partition that has anything.
func (b *Box) waysBack(ctx context.Context, h broker.Hub, partitions []string) (waysBack, error) {
	var ways waysBack
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
		ways = append(ways, &wayBack{
			box: b, hub: h.Name, partition: id, first: int64(info.First), end: int64(info.Last) + 1, bound: info.LastTime,
			step: min(firstStep, most), most: most,
		})
	}
	heap.Init(&ways)
	return ways, nil
}

func (w *wayBack) loaded() bool { return len(w.page) > 0 }
func (w *wayBack) over() bool   { return len(w.page) == 0 && w.end <= w.first }

// newest is when the next event was put there, or later.
func (w *wayBack) newest() time.Time {
	if w.loaded() {
		return w.page[len(w.page)-1].time
	}
	return w.bound
}

// load reads the page before what was read.
func (w *wayBack) load(ctx context.Context) error {
	from := max(w.first, w.end-w.step)
	cursor, err := w.box.cfg.Broker.Cursor(ctx, w.hub, broker.DefaultGroup, w.partition, eventlog.At(eventlog.Sequence(from)))
	if err != nil {
		return err
	}
	defer cursor.Close()
	w.page = w.page[:0]
	for int64(cursor.At()) < w.end {
		run, err := cursor.TryNext(ctx)
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			break
		}
		w.page = items(w.page, run, w.end)
	}
	w.end, w.step = from, min(2*w.step, w.most)
	return nil
}

func (w *wayBack) pop() *item {
	last := len(w.page) - 1
	i := w.page[last]
	w.page = w.page[:last]
	w.bound = i.time
	return &i
}

// skip leaves out everything down to a number, which is given next.
func (w *wayBack) skip(below int64) {
	for w.loaded() && w.page[len(w.page)-1].sequence >= below {
		w.page = w.page[:len(w.page)-1]
	}
	w.end = min(w.end, max(below, w.first))
}

func (w *wayBack) drop() { w.page, w.end = nil, w.first }

// waysBack is a heap with the newest event on top.
type waysBack []*wayBack

func (w waysBack) Len() int           { return len(w) }
func (w waysBack) Less(i, j int) bool { return w[i].newest().After(w[j].newest()) }
func (w waysBack) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waysBack) Push(x any)        { *w = append(*w, x.(*wayBack)) }
func (w *waysBack) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}

// settle puts the one on top, which has changed, where it belongs.
func (w *waysBack) settle() {
	if (*w)[0].over() {
		heap.Pop(w)
		return
	}
	heap.Fix(w, 0)
}
