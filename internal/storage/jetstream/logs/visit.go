package logs

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// How long a stream that this node does not follow is not looked at again. The first is for one that
// somebody else uses, or has used until a moment ago; it is at least that, and at most three times as
// long, so that nodes do not come at the same time. The second is for one at rest: only a retention
// that was changed makes something due that was not.
const (
	visitPause = time.Minute
	visitRest  = 15 * time.Minute
)

// visit is what a node remembers of a stream that it does not follow. Who appends to a stream follows
// it, and tends it. What is left are those at rest, whose events become too old all the same: any node
// looks after them once in a while, and the first to find something due does it, which the others see by
// the stream's end. It is pure, but for look.
type visit struct {
	again time.Time   // when the stream is looked at next
	last  streams.Seq // its end as of the last look
	due   time.Time   // nothing that lay before it can be due earlier
	tried uint64      // what Trim had allowed when it was last tended; see wants.trims
}

// wants is what may be removed of a stream that this node does not follow.
type wants struct {
	// keep is the least that one of its logs keeps; zero: everything.
	keep eventlog.Retention
	// trims are the numbers below which its partitions may begin by Trim and do not as far as is known
	// here, added up; zero: there are none. Only this node knows of them, so that it does not wait until
	// the stream is at rest.
	trims uint64
}

// rested takes notice of the stream's end, and reports whether it is where it was.
func (v *visit) rested(last streams.Seq) bool {
	if v.last != last {
		*v = visit{again: v.again, last: last, tried: v.tried}
		return false
	}
	return true
}

// next says when the stream is looked at next; share is between 0 and 1, and random.
func (v *visit) next(now time.Time, share float64) {
	v.again = now.Add(visitPause + time.Duration(share*2*float64(visitPause)))
	if rest := now.Add(visitRest); v.due.After(v.again) {
		v.again = v.due
		if rest.Before(v.due) {
			v.again = rest
		}
	}
}

// never is when nothing becomes due that is due by its age.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// dueAt says when something of a stream can be due whose oldest message has a time; zero: now.
func dueAt(oldest time.Time, bytes int64, keep eventlog.Retention) time.Time {
	switch {
	case keep.Bytes > 0 && bytes > keep.Bytes:
		return time.Time{}
	case keep.Age > 0:
		return oldest.Add(keep.Age)
	}
	return never
}

// tended says when it can be due again after it was done. A head does not move for each event.
func tended(now time.Time, empty bool, keep eventlog.Retention) time.Time {
	if empty || keep.Age == 0 {
		return never
	}
	return now.Add(keep.Age / 32)
}

// visitor is the part of an engine that looks after streams which it does not follow.
type visitor struct{ *Engine }

// visit looks after the streams that this node does not follow, until ctx or the engine ends.
func (e visitor) visit(ctx context.Context) {
	visits := map[string]*visit{}
	for sleep.For(ctx, e.cfg.TendInterval, nil) == nil && e.life.Err() == nil {
		for name, wants := range e.unfollowed() {
			v := visits[name]
			if v == nil {
				v = &visit{}
				v.next(time.Now(), rand.Float64())
				visits[name] = v
			}
			if time.Now().Before(v.again) {
				continue
			}
			err := e.look(ctx, v, name, wants)
			v.next(time.Now(), rand.Float64())
			if e.warn(ctx, name, err); ctx.Err() != nil || errors.Is(err, streams.ErrUnavailable) {
				break // the others have to wait, too
			}
		}
	}
}

// unfollowed are the streams of the logs that are used here, except those that are followed. One whose
// logs keep everything is left out.
func (e visitor) unfollowed() map[string]wants {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]wants{}
	for name, l := range e.logs {
		if l.def.state != isLive {
			continue
		}
		for _, stream := range streamsOf(name, l.def) {
			s := e.streams[stream]
			if s != nil && follows(s) {
				continue
			}
			w := all[stream]
			w.keep = lesser(w.keep, l.def.retention)
			if s != nil {
				w.trims = allowedTrims(s)
			}
			if w != (wants{}) {
				all[stream] = w
			}
		}
	}
	return all
}

// allowedTrims adds up what Trim has allowed to be removed and is there as far as is known.
func allowedTrims(s *stream) (sum uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.ended == nil && p.trim > p.known.First {
			sum += uint64(p.trim)
		}
	}
	return sum
}

// lesser is what both allow to be removed.
func lesser(a, b eventlog.Retention) eventlog.Retention {
	if a.Age == 0 || b.Age > 0 && b.Age < a.Age {
		a.Age = b.Age
	}
	if a.Bytes == 0 || b.Bytes > 0 && b.Bytes < a.Bytes {
		a.Bytes = b.Bytes
	}
	return a
}

// follows: this node follows the stream.
func follows(s *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// look asks for the stream's state, and has it tended if it is at rest and something can be due, or if
// Trim has allowed something to be removed since it was tended last.
func (e visitor) look(ctx context.Context, v *visit, name string, w wants) error {
	if w.trims == 0 || w.trims == v.tried {
		if due, err := e.isDue(ctx, v, name, w.keep); err != nil || !due {
			return err
		}
	}
	tending, cancel := context.WithTimeout(ctx, visitPause) // others wait for their turn
	defer cancel()
	found, err := e.tendIdle(tending, name)
	if err != nil {
		return err
	}
	v.last, v.due = found.last, tended(time.Now(), found.empty, w.keep)
	if !found.held {
		v.tried = w.trims
	}
	return nil
}

// isDue finds out whether something may have become too old in a stream at rest.
func (e visitor) isDue(ctx context.Context, v *visit, name string, keep eventlog.Retention) (bool, error) {
	state, err := e.cfg.Storage.State(ctx, name)
	if err != nil || !v.rested(state.Last) || state.Messages == 0 || time.Now().Before(v.due) {
		return false, err
	}
	part, err := e.cfg.Storage.Read(ctx, name, streams.Query{From: state.First, MaxMessages: 1, MaxBytes: 1})
	if err != nil || len(part.Messages) == 0 {
		return false, err
	}
	var oldest time.Time // of a message that cannot be read nothing is known
	if h, err := frames.DecodeHeader(part.Messages[0].Data); err == nil {
		oldest = time.UnixMilli(h.Time).Add(-e.cfg.Ahead()) // by this node's clock
	}
	v.due = dueAt(oldest, state.Bytes, keep)
	return !time.Now().Before(v.due), nil
}

// idle is how a stream was left that nobody uses.
type idle struct {
	empty bool        // nothing is left in it
	last  streams.Seq // its end
	held  bool        // what Trim has allowed to be removed has to stay for a while
}

// tendIdle follows a stream for as long as it takes to tend it.
func (e visitor) tendIdle(ctx context.Context, name string) (found idle, err error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return idle{}, eventlog.ErrClosed
	}
	s := tending{stream: e.streamLocked(name), rests: true}
	e.mu.Unlock()
	alone := !follows(s.stream)
	if err := s.foldedTo(ctx, 0); err != nil {
		return idle{}, err
	}
	if err := s.tend(ctx); err != nil {
		return idle{}, err
	}
	found.empty, found.held = len(s.kept()) == 0, len(s.newTrims()) > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if alone { // who uses it meanwhile has it followed anew
		s.touched = time.Time{}
		s.rouse()
	}
	found.last = s.line.at
	return found, nil
}
