package processor

import (
	"sync"
	"time"

	"github.com/eventyard/eventyard/hub"
)

// progress is how far a partition has come, and what there is of it: where a new reader goes on,
// what Status shows, what Partition.Checkpoint stores, and what the watchdog judges by. The pump's
// goroutine and its lanes move it, the survey adds what the hub says, anybody reads it.
type progress struct {
	mu         sync.Mutex // guards all
	generation int        // the ledger's generation that the positions are of
	before     position   // the one before the first that is read
	anchored   bool       // before is certain
	read       position   // newest handed over: a new reader goes on behind it
	current    position   // end of the batch that is handled
	finished   position   // newest handled
	unread     int64      // events since the last one read that cannot be decoded

	newest   hub.LastEnqueued
	newestAt time.Time // when that was learnt

	behind   time.Time // since when events are known to be there that were not read; zero: none are
	waiting  time.Time // since when the reader is being waited for; zero: it is not
	reopened time.Time // when the watchdog last had the reader opened anew; zero: that has helped
}

func newProgress() *progress {
	return &progress{before: nowhere, read: nowhere, current: nowhere, finished: nowhere, newest: hub.LastEnqueued{Sequence: -1}}
}

// begin takes in where a generation begins, and where the partition begins and ends.
func (g *progress) begin(generation int, b beginning, info hub.PartitionInfo, now time.Time) {
	first := info.First - 1
	if info.Empty {
		first = info.Last
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.anchored = b.before, b.anchored
	if b.before.seq < first {
		g.before = position{seq: first}
	}
	g.generation, g.read, g.finished, g.behind = generation, nowhere, nowhere, time.Time{}
	g.newest, g.newestAt = newestOf(info), now
}

func newestOf(info hub.PartitionInfo) hub.LastEnqueued {
	return hub.LastEnqueued{Sequence: info.Last, Offset: info.LastOffset, Enqueued: info.LastEnqueued}
}

// wait notes that the reader is being waited for. That goes on while nothing comes.
func (g *progress) wait(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting.IsZero() {
		g.waiting = now
	}
}

// took notes that the reader has given something, or has not, since then, and what the hub reported
// beside it.
func (g *progress) took(any bool, since time.Time, newest hub.LastEnqueued, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if any {
		g.waiting, g.newestAt = time.Time{}, since
	}
	if known && newest.Sequence > g.newest.Sequence {
		g.newest = newest
	}
}

// count keeps count of what lies behind the last event read and will never be: nothing of it is
// waited for. Whatever is read starts it anew, and so does a new reader, which finds them again.
func (g *progress) count(read, unreadable bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if read {
		g.unread = 0
	}
	if unreadable {
		g.unread++
	}
}

// hand moves the position behind which a new reader goes on.
func (g *progress) hand(last position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read = last
}

func (g *progress) lastRead() position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read
}

// call notes that the handler is called with a batch that ends there.
func (g *progress) call(end position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.current = end
}

// pass notes that everything up to here was handled.
func (g *progress) pass(pos position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pos.seq > g.finished.seq {
		g.finished = pos
	}
	if g.finished.seq > g.newest.Sequence {
		g.newest = hub.LastEnqueued{Sequence: pos.seq, Offset: pos.offset, Enqueued: pos.at}
	}
}

// reached is how far the partition has come, with or without the batch that is handled, and in
// which generation: what was handled before an operator's move says nothing after it.
func (g *progress) reached(inCall bool) (position, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if inCall && g.current.seq > g.finished.seq {
		return g.current, g.generation
	}
	return g.finished, g.generation
}

// lag is what Status shows.
func (g *progress) lag() (done, events int64, by time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	events, by = lag(g.finished, g.before, g.newest)
	return g.finished.seq, events, by
}

// stale reports whether nothing was learnt of the newest event for so long.
func (g *progress) stale(now time.Time, after time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Sub(g.newestAt) >= after
}

// learn takes in what the hub says of the partition.
func (g *progress) learn(info hub.PartitionInfo, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.newestAt = now
	if info.Last >= g.finished.seq { // it may be less than it was: what a transaction holds back was taken for the newest
		g.newest = newestOf(info)
	}
	if info.Empty && g.before.seq < info.Last {
		g.before = position{seq: info.Last} // removed, and so not there to be read
	}
}

// judge is the watchdog's look at it; it remembers what is done about a stall.
func (g *progress) judge(now time.Time, after time.Duration) stall {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.anchored && g.read.seq < 0, g.newest.Sequence <= max(g.read.seq, g.before.seq)+g.unread:
		g.behind = time.Time{}
	case g.behind.IsZero():
		g.behind = now
	}
	s := judgeStall(g.behind, g.waiting, g.reopened, now, after)
	switch {
	case s == stallReopen:
		g.reopened = now
	case g.waiting.IsZero() || g.reopened.Before(g.waiting):
		g.reopened = time.Time{}
	}
	return s
}

type stall int

const (
	stallNone stall = iota
	stallReopen
	stallRelease
)

// judgeStall is the watchdog's rule: with events to read and none coming for so long the reader is
// opened anew; if that does not help for as long again, the partition is released. behind is since
// when there is something to read, zero: nothing; waiting is since when the reader has given
// nothing; zero: it is not waited for, as a call is under way.
func judgeStall(behind, waiting, reopened, now time.Time, after time.Duration) stall {
	if waiting.Before(behind) && !waiting.IsZero() {
		waiting = behind
	}
	switch {
	case behind.IsZero() || waiting.IsZero() || now.Sub(waiting) < after:
		return stallNone
	case reopened.IsZero() || reopened.Before(waiting):
		return stallReopen
	case now.Sub(reopened) < after:
		return stallNone
	}
	return stallRelease
}
