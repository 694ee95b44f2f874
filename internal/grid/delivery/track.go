package delivery

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/watermark"
)

// track is where a lane stands in one partition of its source.
//
// Either it is joined: the feed offers it what matches, and everything below the feed's position
// that is not open in mark is done. A joined lane that is not concerned by an event is not touched
// for it; so its position is the feed's and is not kept anywhere else.
//
// Or it is detached, and stands at position by itself: everything below that matches is open in
// mark, or done. The pump reads on from there, with a cursor of its own, until the position is not
// behind the feed's, and joins it again.
//
// What was taken into memory and has to leave it again before it was sent (the endpoint is on
// probation, say) is put down in left: it stays open in mark, the position goes back to the first
// of them, and reading on takes exactly these again and nothing else below mark.Next.
//
// Everything is guarded by lane.mu. joined becomes true only with feed.mu held as well, so that the
// feed, which holds it, may skip what it sees detached without taking lane.mu.
type track struct {
	lane     *lane
	feed     *feed
	mark     watermark.Mark
	joined   atomic.Bool
	position int64
	left     []remnant // rising, none below position
	// head is when the event at position was published; zero: not known.
	head time.Time
	// after is when the pump may try again: its partition could not be read.
	after time.Time
	// version is raised when position is changed by others than the pump, which then begins anew.
	version int
	// indexed: the feed's index has its filter. Guarded by feed.mu.
	indexed bool
	// touched is the feed's: the lane was given something and has not been poked since.
	touched bool
}

// remnant is what remains of an item that was put down.
type remnant struct {
	n           int64
	attempts    int
	lastAttempt time.Time
	lastOutcome retry.Outcome
	lastStatus  int
	due         time.Time
	history     []pending.Attempt
}

// low is the number below which everything is done.
func (t *track) low() int64 {
	if t.mark.Open() == 0 {
		return t.next()
	}
	return t.mark.Low()
}

// next is the number below which everything that matches is open or done.
func (t *track) next() int64 {
	if t.joined.Load() {
		return max(t.mark.Next(), t.feed.position.Load())
	}
	return t.mark.Next()
}

// detach lets the track stand by itself, before an event that it cannot take now.
func (t *track) detach(n int64, at time.Time) {
	t.mark.Pass(n)
	t.position, t.head = n, at
	t.version++
	t.joined.Store(false)
}

// putDown gives items up from memory, to be read again. They are all of this track.
func (t *track) putDown(items []*item) {
	if t.joined.Load() {
		t.detach(t.next(), time.Time{})
	}
	for _, it := range items {
		t.left = append(t.left, remnant{
			n: it.Sequence, attempts: it.Attempts, lastAttempt: it.LastAttempt,
			lastOutcome: it.LastOutcome, lastStatus: it.LastStatus, due: it.Due, history: it.History,
		})
	}
	slices.SortFunc(t.left, func(a, b remnant) int { return cmp.Compare(a.n, b.n) })
	if first := t.left[0].n; first < t.position {
		t.position, t.head = first, time.Time{}
	}
	for _, it := range items {
		if it.Sequence == t.position {
			t.head = it.Published
		}
	}
	t.version++
}

// pickUp takes what was put down of an event, if it was. The pump comes by in order.
func (t *track) pickUp(n int64) (remnant, bool) {
	if len(t.left) == 0 || t.left[0].n != n {
		return remnant{}, false
	}
	r := t.left[0]
	if t.left = t.left[1:]; len(t.left) == 0 {
		t.left = nil
	}
	return r, true
}

// moveTo says that the pump has looked at everything below n; head is when the event at n was
// published, if that is known. What was put down below and not picked up can not be read any
// more: retention or damage took it. There is nothing left to be done for it.
func (t *track) moveTo(n int64, head time.Time) (lost int) {
	for len(t.left) > 0 && t.left[0].n < n {
		t.mark.Finish(t.left[0].n)
		t.left = t.left[1:]
		lost++
	}
	if len(t.left) == 0 {
		t.left = nil
	}
	t.position, t.head = n, head
	t.mark.Pass(n)
	return lost
}
