package logs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// searchPause is how long marks are not searched again for what a partition may lose.
const searchPause = time.Minute

// searchFrames is how many frames are read at most behind the mark that was found.
const searchFrames = 4096

// tending does the background work of a stream.
type tending struct {
	*stream
	// rests: nobody uses the stream, so that a mark is written for whatever has none.
	rests bool
}

// tend writes a mark where one is due, or where enough has become too old, and removes the stream's
// beginning as far as all partitions allow. Several nodes may do it at once.
func (s tending) tend(ctx context.Context) error {
	if err := s.tending.take(ctx); err != nil {
		return err
	}
	defer s.tending.give()
	if err := s.measure(ctx); err != nil {
		return err
	}
	if err := s.allowTrims(ctx); err != nil {
		return err
	}
	now := time.Now()
	moved := false
	for _, p := range s.kept() {
		head, err := p.newHead(ctx, now)
		if err != nil {
			return err
		}
		moved = p.moveHead(head) || moved
	}
	s.mu.Lock()
	due := moved || s.markDueLocked(now) || s.rests && s.fold.unmarked.Frames > 0
	if !s.readyLocked() || !due {
		s.mu.Unlock()
		return nil
	}
	messages := s.marksLocked(now, nil)
	s.mu.Unlock()
	if messages == nil {
		return nil
	}
	last, err := s.writeMark(ctx, messages)
	if err == nil {
		err = s.foldedTo(ctx, last) // it stands for what is removed now
	}
	if err != nil {
		return err
	}
	if err := s.purge(ctx); err != nil {
		return err
	}
	return s.measure(ctx)
}

// measure asks how full the stream is, where that is bounded, and now and then whether it is.
func (s tending) measure(ctx context.Context) error {
	s.mu.Lock()
	known := s.room.known()
	s.mu.Unlock()
	if known {
		return nil
	}
	state, err := s.e.cfg.Storage.State(ctx, s.name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.room = roomOf(state)
	s.mu.Unlock()
	return nil
}

// foldedTo waits until the stream is folded up to a sequence that it has.
func (s tending) foldedTo(ctx context.Context, seq streams.Seq) error {
	return s.until(ctx, func() (bool, error) {
		if s.closing {
			return false, eventlog.ErrClosed
		}
		return s.foldedLocked(seq), nil
	})
}

// kept are the partitions that may lose something. Claims that nobody uses are dropped in passing.
func (s tending) kept() (parts []*part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.readyLocked() {
		return nil
	}
	for _, p := range s.parts {
		p.claims = slices.DeleteFunc(p.claims, func(w *writer) bool {
			return w.w.Idle() && w.w.Settled() && time.Since(w.used) > frames.ProducerLife
		})
		if state := p.fold.State(); p.ended == nil && state.Head.First < state.Next {
			parts = append(parts, p)
		}
	}
	return parts
}

// retentionOf is that of a partition's log, as far as it is known here.
func (p *part) retention() eventlog.Retention {
	name, ok := logOf(p.s.name, p.subject)
	if !ok {
		return eventlog.Retention{}
	}
	e := p.s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.logs[name]; l != nil {
		return l.def.retention
	}
	return eventlog.Retention{}
}

// removedLocked: the log of a subject was removed. It is called with the stream's lock held, and so
// does not look at what Engine.mu guards.
func (e *Engine) removedLocked(stream, subject string) bool {
	name, ok := logOf(stream, subject)
	if !ok {
		return false
	}
	_, removed := e.removed.Load(name)
	return removed
}

// rule is what may be removed of a partition now.
type rule struct {
	trim     eventlog.Sequence
	before   int64 // of this time, in milliseconds
	maxBytes int64 // 0: any
	bytes    int64 // frames.State.Bytes of the whole
}

// passes: all up to a state may go, and what is left is not less than may be kept.
func (r rule) passes(s frames.State) bool {
	return s.Next <= r.trim || s.Time < r.before || r.maxBytes > 0 && r.bytes-s.Bytes >= r.maxBytes
}

// goes: a frame may go, behind which the partition is in this state.
func (r rule) goes(before int64, after frames.State) bool {
	return r.passes(after) || r.maxBytes > 0 && r.bytes-before > r.maxBytes && after.Bytes < r.bytes
}

// newHead says where a partition may begin. The index tells for what it has, marks and what lies behind
// them for what is older; that is looked for once in a while.
func (p *part) newHead(ctx context.Context, now time.Time) (frames.Head, error) {
	retention := p.retention()
	p.s.mu.Lock()
	if p.fold == nil { // nobody uses it any more
		p.s.mu.Unlock()
		return frames.Head{}, nil
	}
	state := p.fold.State()
	r := rule{trim: min(p.allowed, state.Next), maxBytes: retention.Bytes, bytes: state.Bytes}
	if retention.Age > 0 {
		r.before = p.s.e.stamp(now.Add(-retention.Age))
	}
	head := p.index.head(r)
	oldest, indexed := p.index.first()
	old := r.trim > state.Head.First || r.before > 0 || r.maxBytes > 0
	search := head.First == 0 && old && (!indexed || oldest.first > state.Head.First) && now.Sub(p.searched) >= searchPause
	if search {
		p.searched = now
	}
	p.s.mu.Unlock()
	if !search {
		return head, nil
	}
	return p.searchHead(ctx, r, state.Head.First)
}

// head gives the end of the last frame that goes.
func (x *index) head(r rule) (head frames.Head) {
	for i, s := range x.spots {
		after := frames.State{Next: s.next(), Time: s.time, Bytes: r.bytes}
		if i+1 < len(x.spots) {
			after.Bytes = x.spots[i+1].before
		}
		if !r.goes(s.before, after) {
			break
		}
		head = frames.Head{First: after.Next, Seq: s.seq, Bytes: after.Bytes}
	}
	return head
}

// searchHead looks for it before the index, from a mark on: not one before the head, from where on
// frames may be gone.
func (p *part) searchHead(ctx context.Context, r rule, first eventlog.Sequence) (head frames.Head, err error) {
	fold, err := p.foldBefore(ctx, func(s frames.State) bool { return s.Before(first) || r.passes(s) })
	if err != nil {
		return frames.Head{}, err
	}
	if s := fold.State(); r.passes(s) {
		head, first = frames.Head{First: s.Next, Seq: fold.At(), Bytes: s.Bytes}, max(first, s.Next)
	}
	reader := reader{fold: fold}
	for range searchFrames {
		before := fold.State().Bytes
		there, at, err := reader.find(ctx, p, first, true)
		if _, damaged := errors.AsType[*eventlog.CorruptError](err); damaged {
			return head, nil // a mark behind it allows more, when it is old enough
		}
		if err != nil || !there || reader.fold != fold {
			return head, err // the index has the rest
		}
		after := fold.State()
		if !r.goes(before, after) {
			break
		}
		head, first = frames.Head{First: after.Next, Seq: fold.At(), Bytes: after.Bytes}, max(at, after.Next)
	}
	return head, nil
}

// moveHead has the partition begin there, if that is worth a mark: if it is then empty, or an eighth
// of it goes.
func (p *part) moveHead(head frames.Head) bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.fold == nil || p.ended != nil {
		return false
	}
	state := p.fold.State()
	if head.First <= state.Head.First || head.First < state.Next && head.Bytes-state.Head.Bytes < state.Held()/8 {
		return false
	}
	p.fold.Trim(head)
	p.noteLocked()
	return p.fold.State().Head.First > state.Head.First
}
