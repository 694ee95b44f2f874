package retrylog

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	retryLogsLog = "grid-tiers"
	// readMore is how much further than need be a retry log is read when it is read, so that one
	// with many small batches is read about once in that time.
	readMore = time.Second
	// How long a retry log is left alone after an error, twice as long each time.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// retryLog is the log of one wait.
type retryLog struct {
	queue
	position int
	wait     time.Duration

	// All these are of Run's goroutine alone. readAt is when the log has to be read again for
	// what may be due then; astray is by how much the clock was wrong when entries were put
	// that seem to be due too late.
	ahead       ahead
	readAt      time.Time
	astray      time.Duration
	pause       time.Duration
	pausedUntil time.Time

	// atEnd says that all of the log was read; who puts clears it. doubt is from when on that has
	// to be looked at once more, because somebody did not wait for what he put; zero: never. Both
	// guarded by mu.
	atEnd bool
	doubt time.Time
	// claimed are the numbers of those that were counted, or are by the count at the start,
	// which has come to scanned and ends at scanEnd. Guarded by mu.
	claimed          ranges.Set
	scanned, scanEnd int64
}

func newRetryLog(t *Logs, position int, wait time.Duration, shape eventlog.Shape, room int) *retryLog {
	r := &retryLog{position: position, wait: wait, ahead: ahead{room: room}}
	log := retryLogsLog
	if held := t.cfg.Held; held != nil {
		log += "-" + held.Name()
	}
	r.init(t, eventlog.PartitionID{Log: log, Number: position}, shape, t.books.waiting, retryLogName(position))
	r.waitMS = wait.Milliseconds()
	r.atEnd = !r.used.Load()
	r.opened, r.finished = r.toCount, r.uncount
	return r
}

// toCount leaves what is there to the count at the start.
func (r *retryLog) toCount(low, next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claimed.Claim(ranges.Range{First: 0, Last: next - 1})
	r.scanned, r.scanEnd = low, next
	if low < next {
		r.keep = low // so that it finds what was done meanwhile
	}
}

// put stores pending deliveries and wakes the reader if it has nothing else to read first.
func (r *retryLog) put(ctx context.Context, deliveries []pending.Delivery) error {
	err := r.append(ctx, deliveries, r.stored)
	r.mu.Lock()
	idle := r.atEnd
	r.atEnd = false // also after an error: something may be there
	if err != nil && ctx.Err() != nil {
		r.doubt = r.t.now().Add(maxSleep) // or will be soon
	}
	r.mu.Unlock()
	if idle {
		signal(r.t.wake)
	}
	return err
}

// stored counts a batch, unless the reader was faster.
func (r *retryLog) stored(first int64, batch []pending.Delivery) {
	r.t.metrics.put.Add(float64(len(batch)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claimed.Claim(ranges.Range{First: first, Last: first + int64(len(batch)) - 1}) {
		for i := range batch {
			r.t.counts.add(&batch[i], r.position, 1)
		}
	}
}

// read reads ahead, up to what may be due soon or until there is no room. The error is
// eventlog.ErrClosed or ctx's: others make the retry log pause.
func (r *retryLog) read(ctx context.Context, now time.Time) error {
	if !r.toRead(now) {
		return nil
	}
	err := r.readOn(ctx, now)
	switch {
	case err == nil:
		r.pause = 0
		return nil
	case ctx.Err() != nil, errors.Is(err, eventlog.ErrClosed):
		return err
	}
	r.pause = min(max(2*r.pause, firstPause), maxPause)
	r.pausedUntil = now.Add(r.pause)
	r.t.log.Error("retry log cannot be read, it is tried again", "wait", r.wait, "in", r.pause, "error", err)
	return nil
}

// toRead tells whether it is time to.
func (r *retryLog) toRead(now time.Time) bool {
	if r.ahead.full || now.Before(r.readAt) || now.Before(r.pausedUntil) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.doubt.Sub(now); !r.doubt.IsZero() && (left <= 0 || left > 2*maxSleep) { // over, or the clock was set
		r.doubt, r.atEnd = time.Time{}, false
	}
	return !r.atEnd
}

func (r *retryLog) isAtEnd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.atEnd
}

func (r *retryLog) setAtEnd(atEnd bool) {
	r.mu.Lock()
	r.atEnd = atEnd
	r.mu.Unlock()
}

func (r *retryLog) readOn(ctx context.Context, now time.Time) error {
	part, err := r.open(ctx)
	if err != nil {
		return err
	}
	from := eventlog.NewReader(part.Cursor, eventlog.Sequence(r.unread()))
	defer from.Close()
	for !r.ahead.full && !now.Add(readMore).Before(r.readAt) {
		r.setAtEnd(true) // before the look: what is put after it clears it
		run, err := r.nextRun(ctx, from)
		if err != nil {
			r.setAtEnd(false)
			return err
		}
		if len(run.Events) > 0 {
			r.setAtEnd(false)
			r.takeIn(run, now)
			if r.readAt = now; !run.Time.After(now.Add(readMore)) {
				r.readAt = run.Time.Add(r.leastWait())
			} // else the clock was set back: what is behind may be due at any time
		} else if r.passTo(int64(from.At())); r.isAtEnd() {
			return nil
		}
	}
	return nil
}

// leastWait is the least after which what was put later than something can be due. It allows
// for the usual jitter also where there is none now: there may have been when it was put.
func (r *retryLog) leastWait() time.Duration {
	r.mu.Lock()
	wait := min(r.wait, time.Duration(r.oldWaitMS)*time.Millisecond)
	r.mu.Unlock()
	return time.Duration((1 - r.spread()) * float64(wait))
}

func (r *retryLog) spread() float64 { return max(r.t.cfg.Spread, defaultSpread) }

// due is when an entry is to be handed out. One that would have to wait for longer than its
// retry log makes anybody wait was put while the clock was wrong, and so it waits from now on; and
// those that follow as long after it as they should have.
func (r *retryLog) due(h *held, now time.Time) time.Time {
	wait := r.wait
	r.mu.Lock()
	if h.number < r.oldEnd {
		wait = max(wait, time.Duration(r.oldLongestMS+1)*time.Millisecond)
	}
	r.mu.Unlock()
	due, longest := h.delivery.Due, time.Duration((1+r.spread())*float64(wait))+readMore
	if due.Sub(now) <= longest {
		return due
	}
	if due.Sub(now)-r.astray > 2*longest {
		r.astray = due.Sub(now) - longest
	}
	return due.Add(-r.astray)
}

// retime has everything timed anew, because the clock was set back.
func (r *retryLog) retime(now time.Time) {
	r.readAt, r.pausedUntil = time.Time{}, time.Time{}
	slices.SortFunc(r.ahead.entries, compareHeld) // the next due goes first: it decides how far all are astray
	for _, h := range r.ahead.entries {
		h.due = r.due(h, now)
	}
	heap.Init(&r.ahead.entries)
}

// takeIn puts a run's entries among what was read ahead. It counts them where nobody has: who
// put them was not told that they are there.
func (r *retryLog) takeIn(run eventlog.Run, now time.Time) {
	all := r.hold(int64(run.First), run.Events)
	r.mu.Lock()
	if r.claimed.Claim(ranges.Range{First: int64(run.First), Last: int64(run.Next()) - 1}) {
		for _, h := range all {
			r.t.counts.add(&h.delivery, r.position, 1)
		}
	}
	r.mu.Unlock()
	for _, h := range all {
		h.due = r.due(h, now)
		r.ahead.push(h)
	}
}

// uncount is called with mu held. What the count at the start has not come to is not counted.
func (r *retryLog) uncount(h *held) {
	if h.number < r.scanned || h.number >= r.scanEnd {
		r.t.counts.add(&h.delivery, r.position, -1)
	}
}

// next is when the retry log has to be looked at again.
func (r *retryLog) next() time.Time {
	next, some := r.ahead.due()
	if r.ahead.full || r.isAtEnd() {
		if !some {
			return time.UnixMilli(math.MaxInt64)
		}
		return next
	}
	readAt := r.readAt
	if r.pausedUntil.After(readAt) {
		readAt = r.pausedUntil
	}
	if !some || readAt.Before(next) {
		return readAt
	}
	return next
}
