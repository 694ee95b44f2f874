package logs

import (
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

// part is a partition as a stream knows it. The stream's lock guards all of it but the first two.
type part struct {
	s       *stream
	subject string

	fold  *frames.Partition // nil while the stream is not loaded
	index index
	began frames.StreamSeq // the first frame that counted, if the fold has seen it; else 0

	own      *writer   // this process's, from its first append on
	claims   []*writer // those of idempotent producers, the newest last
	pending  int       // bytes submitted and not answered
	waiters  map[*waiter]struct{}
	known    eventlog.Bounds   // what was told of it; it never goes back
	trim     eventlog.Sequence // what Trim has allowed to be removed
	allowed  eventlog.Sequence // what of that may go, since nobody held it when that was looked for
	searched time.Time         // when marks were last searched for what may be removed
	draining bool              // nothing more can be submitted
	ended    error             // why nothing can be done any more; nil as long as something can
}

// waiter is a cursor that waits for an event from a number on.
type waiter struct {
	at   eventlog.Sequence
	wake func()
}

// boundsLocked is what the fold says.
func (p *part) boundsLocked() eventlog.Bounds {
	state := p.fold.State()
	b := eventlog.Bounds{First: state.Head.First, Next: state.Next, Bytes: state.Held()}
	if state.Time > 0 {
		b.LastTime = time.UnixMilli(state.Time)
	}
	return b
}

// noteLocked keeps what the fold says, and wakes who waits for it.
func (p *part) noteLocked() {
	b := p.boundsLocked()
	b.Bytes = 0
	if b.Next >= p.known.Next {
		b.First = max(b.First, p.known.First)
		p.known = b
	}
	for w := range p.waiters {
		if w.at < b.Next {
			p.leaveLocked(w)
			w.wake()
		}
	}
}

// awaitLocked has a waiter woken, at once if there is something.
func (p *part) awaitLocked(w *waiter) {
	if p.ended != nil || p.s.readyLocked() && w.at < p.fold.State().Next {
		w.wake()
		return
	}
	if p.waiters == nil {
		p.waiters = map[*waiter]struct{}{}
	}
	p.waiters[w] = struct{}{}
	p.s.watchers++
	p.s.useLocked()
	p.s.rouse()
}

func (p *part) leaveLocked(w *waiter) {
	if _, there := p.waiters[w]; there {
		delete(p.waiters, w)
		p.s.watchers--
	}
}

// endLocked ends all that waits, with the same error for everybody. What was submitted and not
// answered is of no use to anybody any more where the log was removed.
func (p *part) endLocked(err error) {
	if p.ended != nil {
		return
	}
	p.ended = err
	for w := range p.waiters {
		p.leaveLocked(w)
		w.wake()
	}
	for _, w := range p.writersLocked() {
		w.end(err)
	}
	p.s.changedLocked()
}

// writersLocked are all that there are.
func (p *part) writersLocked() []*writer {
	if p.own == nil {
		return p.claims
	}
	return append([]*writer{p.own}, p.claims...)
}

// seenLocked tells the writers of a frame what became of it.
func (p *part) seenLocked(seen frames.Seen) {
	if id := seen.Header.Writer; !id.Producer {
		if p.own != nil && id == p.s.e.process {
			p.own.sees(seen)
		}
		return
	}
	for _, w := range p.claims {
		if w.id == seen.Header.Writer && !w.rests { // what it has seen before is not for it
			w.sees(seen)
		}
	}
}

// settledLocked: nothing of this process is in doubt of which somebody was told so.
func (p *part) settledLocked() bool {
	for _, w := range p.writersLocked() {
		if w.uncertain && !w.w.Settled() {
			return false
		}
	}
	return true
}

// ownLocked gives this process's writer.
func (p *part) ownLocked() *writer {
	if p.own == nil {
		p.own = newWriter(p, p.s.e.process, frames.NewWriter(p.s.e.process))
	}
	return p.own
}

// restClaimsLocked has claims rest, since fences of others may be missed from now on. One with something
// under way ends; what it has in doubt is settled all the same.
func (p *part) restClaimsLocked() {
	for _, w := range p.claims {
		if w.w.Idle() && w.w.Settled() && !w.claiming {
			w.rests = true
			continue
		}
		w.giveUp()
		w.dropped = true
	}
}

// wakeLocked has a claim that rests go on, unless somebody has fenced the producer meanwhile: the fold
// knows.
func (p *part) wakeLocked(w *writer) {
	if w.rests {
		epoch, _, known := p.fold.Writer(w.id)
		w.rests, w.dropped = false, !known || epoch != w.epoch
	}
}
