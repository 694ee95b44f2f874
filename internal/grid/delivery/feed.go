package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// stretch is how many events are offered at a time: those who want to join wait so long at most,
// and lanes are poked after so many.
const stretch = 128

// feed reads one partition of a source once for all its lanes. It never waits for any of them.
type feed struct {
	s         *Service
	origin    origin
	source    string
	label     string // of the source, for spans
	partition int
	log       *slog.Logger
	// position is next, for those who do not hold mu. It is moved after everything below has been
	// offered, never before.
	position atomic.Int64
	// changed: a lane's mark may have moved since the cursors were saved.
	changed atomic.Bool

	// mu is held while a stretch of events is offered. lane.mu may be taken under it.
	mu      sync.Mutex
	next    int64 // written by the feed's goroutine, and before it starts
	matcher *filter.Matcher
	tracks  []*track // by number of the filter

	// What follows is the feed's goroutine's alone.
	reading reading
	matched []int
	touched []*track
}

// run reads until ctx ends or the source is gone.
func (f *feed) run(ctx context.Context) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil || ended(err) {
			return
		}
		f.log.Warn("the events of a source cannot be read, trying again", "at", f.position.Load(), "after", wait, "error", err)
		if time.Since(began) > longestPause {
			wait = firstPause
		}
		if sleep.For(ctx, wait, nil) != nil {
			return
		}
	}
}

// follow offers what there is and what comes.
func (f *feed) follow(ctx context.Context) error {
	cursor, err := f.origin.cursor(ctx, f.partition, f.position.Load())
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	for {
		run, err := cursor.Next(ctx)
		if err != nil {
			return f.pass(err)
		}
		if lost := lost(ctx, f.origin, f.partition, f.position.Load(), &run); lost > 0 {
			f.s.metrics.overtaken.Add(float64(lost))
			f.log.Warn("events were removed before all subscriptions had them: retention is too short", "events", lost)
		}
		for from := 0; from < len(run.Events) && ctx.Err() == nil; from += stretch {
			f.offer(&run, from, min(from+stretch, len(run.Events)))
		}
	}
}

// pass goes on behind damage, of which the engine says where it ends.
func (f *feed) pass(err error) error {
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok && corrupt.Next != eventlog.NoSequence {
		f.mu.Lock()
		f.s.metrics.unreadable.Add(float64(max(int64(corrupt.Next)-f.next, 0)))
		f.move(int64(corrupt.Next))
		f.mu.Unlock()
	}
	return err
}

// offer gives a stretch of a run to the lanes that it concerns, and pokes them.
func (f *feed) offer(run *eventlog.Run, from, to int) {
	f.mu.Lock()
	for i := from; i < to; i++ {
		f.offerOne(run, i)
	}
	f.move(int64(run.First) + int64(to))
	f.mu.Unlock()
	now := time.Now()
	for i, t := range f.touched {
		t.touched, f.touched[i] = false, nil
		t.lane.poke(now)
	}
	f.touched = f.touched[:0]
}

// move is called with mu held.
func (f *feed) move(next int64) {
	f.next = next
	f.position.Store(next)
	f.note()
}

func (f *feed) note() {
	if !f.changed.Load() {
		f.changed.Store(true)
		nudge(f.s.unsaved) // the cursors are saved within a second
	}
}

func (f *feed) offerOne(run *eventlog.Run, i int) {
	n := int64(run.First) + int64(i)
	if err := f.origin.scan(&f.reading, f.partition, n, run.Time, &run.Events[i]); err != nil {
		f.s.unreadable(f.log, n, err)
		return
	}
	f.matched = f.matcher.Match(&f.reading.envelope, f.matched[:0])
	if f.s.cfg.Tracer != nil {
		f.traceMatch(n)
	}
	if len(f.matched) == 0 {
		return
	}
	a := f.arrival(&f.reading, run, n)
	for _, number := range f.matched {
		t := f.tracks[number]
		if t.joined.Load() && t.lane.offer(t, &a) && !t.touched {
			t.touched = true
			f.touched = append(f.touched, t)
		}
	}
	a.end(f.s.budget)
}

func (f *feed) arrival(r *reading, run *eventlog.Run, n int64) arrival {
	return arrival{source: f.source, partition: f.partition, n: n, time: run.Time, form: r.envelope.Form, raw: r.envelope.Raw, hops: r.hops, trace: r.trace}
}

// use makes the feed match with another index from the next stretch on. Lanes that are in it and
// not behind join at once; aside are those that it leaves out.
func (f *feed) use(x *filter.Index, in, aside []*lane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.matcher, f.tracks = x.Matcher(), make([]*track, len(in))
	for i, l := range in {
		f.tracks[i] = l.tracks[f.partition]
		f.tracks[i].indexed = true
		f.admit(f.tracks[i])
	}
	for _, l := range aside {
		t := l.tracks[f.partition]
		t.indexed = false
		l.mu.Lock()
		if t.joined.Load() {
			t.detach(t.next(), time.Time{})
		}
		l.mu.Unlock()
	}
}

// join lets a track that has caught up be offered what comes next.
func (f *feed) join(t *track) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.admit(t)
}

// admit is called with mu held. A track that is ahead of the feed joins as well: what is below
// its mark it has had.
func (f *feed) admit(t *track) bool {
	t.lane.mu.Lock()
	defer t.lane.mu.Unlock()
	if t.joined.Load() {
		return true
	}
	if !t.indexed || t.position < f.next || len(t.left) > 0 {
		return false
	}
	t.joined.Store(true)
	t.version++ // a step of the pump that is under way does no more: what comes is the feed's
	return true
}
