package processor

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/eventyard/eventyard/event"
)

// lanes handle the events of one partition in several goroutines: those of one key in one
// lane, in order, and those without a key in turn. A batch that has to come again holds up
// its lane only, until the window is full: no more is read than so many events beyond the
// lowest unfinished one, as they are all held in memory and all come again after a crash.
type lanes struct {
	part      *Partition
	gen       *generation
	ownership *ownership
	deliver   func(*scope, *Batch) error
	maxBatch  int
	window    int64
	seed      maphash.Seed
	room      chan struct{} // capacity 1: something was finished
	running   sync.WaitGroup

	mu     sync.Mutex // guards what follows, and the lanes' marks
	list   []*lane
	newest position // handed to a lane
	begun  int64    // the newest event that a lane has taken
}

// lane is one of them. Its goroutine alone uses scope, events and before.
type lane struct {
	all    *lanes
	scope  *scope
	wake   chan struct{} // capacity 1: there is something in the queue
	events []event.Event
	before []position
	marks  watermark // guarded by all.mu
}

func startLanes(p *pump) *lanes {
	cfg := &p.in.cfg
	all := &lanes{part: p.part, gen: p.gen, ownership: p.ownership, deliver: p.deliver, maxBatch: cfg.MaxBatch,
		window: int64(max(2*cfg.Lanes*cfg.MaxBatch, 10*cfg.Prefetch)),
		seed:   maphash.MakeSeed(), room: make(chan struct{}, 1), newest: nowhere, begun: -1}
	for range cfg.Lanes {
		l := &lane{all: all, scope: p.calls.newScope(), wake: make(chan struct{}, 1)}
		all.list = append(all.list, l)
		all.running.Go(l.run)
	}
	return all
}

// deal hands events to their lanes.
func (a *lanes) deal(events []event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := uint64(len(a.list))
	for i := range events {
		at := uint64(events[i].Sequence) % n
		if key := events[i].Key; key != "" {
			at = maphash.String(a.seed, key) % n
		}
		l := a.list[at]
		l.marks.add(events[i], a.newest)
		a.newest = positionOf(&events[i])
		if len(l.marks.queue) > 1 {
			continue // it was woken for the first
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// waitForRoom waits until the window is not full.
func (a *lanes) waitForRoom(ctx context.Context) error {
	for {
		a.mu.Lock()
		low := lowest(a.list, a.newest, (*lane).unfinished)
		full := a.newest.seq-low.seq > a.window
		a.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-a.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *lanes) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.list {
		if _, busy := l.unfinished(); busy {
			return false
		}
	}
	return true
}

func (l *lane) unfinished() (position, bool) { return l.marks.unfinished() }
func (l *lane) undone() (position, bool)     { return l.marks.undone() }

// run is the lane's goroutine.
func (l *lane) run() {
	ctx := l.all.gen.ctx
	for {
		ended := ctx.Err() != nil // before looking, so that nothing is overlooked
		b := l.take()
		if b == nil {
			if ended {
				return
			}
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		if l.all.deliver(l.scope, b) != nil {
			return // the partition, or its generation, has ended
		}
	}
}

// take makes a batch of what is in the queue; once the partition is being given up, of what is
// behind other lanes: without it whatever those have done would come again.
func (l *lane) take() *Batch {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	n, catchUp := min(l.all.maxBatch, len(l.marks.queue)), false
	if l.all.gen.ctx.Err() != nil {
		n, catchUp = min(n, l.behindLocked()), true
	}
	if n == 0 {
		return nil
	}
	l.events, l.before = l.marks.take(n, l.events[:0], l.before[:0])
	end := positionOf(&l.events[len(l.events)-1])
	l.all.begun = max(l.all.begun, end.seq)
	return &Batch{Events: l.events, Partition: l.all.part, gen: l.all.gen, end: end, lane: l, before: l.before, catchUp: catchUp}
}

// behindLocked is how many events of the queue are behind what other lanes have begun, while the
// partition is given up in good order. After an operator's move none is.
func (l *lane) behindLocked() int {
	t := l.all.ownership
	if t.work.Err() != nil || context.Cause(l.all.gen.ctx) != context.Cause(t.read) {
		return 0
	}
	n := 0
	for n < len(l.marks.queue) && l.marks.queue[n].Sequence < l.all.begun {
		n++
	}
	return n
}

// finish notes that a batch was handled, and gives the newest event before which all were.
func (a *lanes) finish(b *Batch) position {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.lane != nil {
		b.lane.marks.finish()
	}
	select {
	case a.room <- struct{}{}:
	default:
	}
	return lowest(a.list, a.newest, (*lane).unfinished)
}

// mark notes that a batch is done up to pos, and gives the newest event before which all are.
func (a *lanes) mark(b *Batch, pos position) position {
	a.mu.Lock()
	defer a.mu.Unlock()
	var after *position
	for i := range b.Events[:max(len(b.before)-1, 0)] {
		if b.Events[i].Sequence == pos.seq {
			after = &b.before[i+1]
		}
	}
	b.lane.marks.mark(pos.seq, after)
	return lowest(a.list, a.newest, (*lane).undone)
}

// skip notes that a batch need not be marked, and gives the same.
func (a *lanes) skip(b *Batch) position {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.lane.marks.skip(b.end.seq)
	return lowest(a.list, a.newest, (*lane).undone)
}
