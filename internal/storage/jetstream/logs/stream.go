package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// Times by which a stream is followed.
const (
	// patience is how long a batch waits for its fate, and a call for the storage.
	patience = 20 * time.Second
	// askPatience is how long the storage is asked again where it does not answer.
	askPatience = 8 * time.Second
	// holeAge is how long what is missing may be on its way before it is read.
	holeAge = 20 * time.Millisecond
	// quietAge is how long a stream that somebody waits at is quiet before it is asked.
	quietAge = time.Second
	// retryPause is the pause after a call that failed, and between fences.
	retryPause = 100 * time.Millisecond
	// stalePause is the pause after an answer of a server that does not have the newest yet.
	stalePause = 5 * time.Millisecond
)

// stream is one stream as this node follows it: what was heard of it, in order, and the folds of its
// partitions. It is followed from its first use on until nobody has used it for a while, by one
// goroutine, the feeder, which alone folds, drives the writers and publishes what they want sent.
// Whatever others have for it they leave under mu, and wake it.
type stream struct {
	e    *Engine
	name string
	wake chan struct{}
	// tending is held by who tends the stream: heads move, a mark says so, and only then is anything
	// removed. It comes before mu.
	tending turn
	// submitted counts batches.
	submitted atomic.Int64

	mu sync.Mutex
	// All guarded by mu.
	parts    map[string]*part // by subject
	line     line
	fold     foldState
	room     room
	errand   errandState
	acks     []ack
	active   map[*writer]bool // those that wait for something
	running  bool             // there is a feeder
	closing  bool             // it is to end
	touched  time.Time        // when the stream was last used
	news     time.Time        // when something of it was last heard or read
	waiting  int              // calls of until
	watchers int              // cursors that wait
	changed  chan struct{}    // closed when those who wait should look again; nil if nobody does
	moved    bool             // something has changed that they may wait for
	unheard  func()           // ends listening; nil while nobody listens
}

// foldState is how far the stream is folded.
type foldState struct {
	// loaded: the folds are those of a mark, or of the beginning, and of all behind it up to line.at.
	loaded bool
	// begun is the sequence where they began.
	begun frames.StreamSeq
	// least is what has to be folded before anybody is told anything: as much as was known before.
	least    frames.StreamSeq
	unmarked frames.Unmarked
	marks    []markAt
	// searched is the least sequence needed, for which older marks were searched last.
	searched frames.StreamSeq
	// doubted is the frame whose base disagreed with the fold, for which it was begun anew.
	doubted frames.StreamSeq
	// passed: the fold went on behind what was purged of removed logs. Where a frame disagrees all the same, it was
	// not theirs alone: then nothing before that frame, strict, is passed so again, unless its own log, of strictOf,
	// turns out to be one of them.
	passed   bool
	strict   frames.StreamSeq
	strictOf string
	// lossy: the fold went on behind what is lost for ever.
	lossy bool
}

// mayPass: other logs may have been removed from the stream, and nothing that was read behind what is missing from a
// sequence on disagreed, but for frames of removed logs. A hub's log has its streams for itself.
func (f *foldState) mayPass(stream string, from streams.Seq, removed func(stream, subject string) bool) bool {
	_, own := hubLog(stream)
	return !own && (from > f.strict || removed(stream, f.strictOf))
}

// doubt has the stream read anew, since a frame disagrees with the fold, unless that was done for it: then it is the
// frame's writer who had it wrong, if the stream is whole. Where something was passed by it is done as often as it
// takes.
func (f *foldState) doubt(seq streams.Seq, subject string) bool {
	if f.lossy || f.doubted == seq && !f.passed {
		return false
	}
	if f.passed && seq >= f.strict {
		f.strict, f.strictOf = seq, subject
	}
	f.doubted = seq
	return true
}

// newStream makes one that is not followed yet.
func newStream(e *Engine, name string) *stream {
	return &stream{e: e, name: name, tending: newTurn(), wake: make(chan struct{}, 1), parts: map[string]*part{}, active: map[*writer]bool{}}
}

// rouse wakes the feeder.
func (s *stream) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

// useLocked has the stream followed from now on, for a while.
func (s *stream) useLocked() {
	s.touched = time.Now()
	if s.running || s.closing {
		return
	}
	s.running = true
	s.news = s.touched
	s.e.start(s.feed)
}

// readyLocked: what is folded is not less than what this process has known before.
func (s *stream) readyLocked() bool { return s.fold.loaded && s.line.at >= s.fold.least }

// partLocked gives a partition, which need not have a handle.
func (s *stream) partLocked(subject string) *part {
	p := s.parts[subject]
	if p == nil {
		p = &part{s: s, subject: subject}
		if s.fold.loaded {
			p.fold = frames.Restore(s.fold.begun, frames.PartitionState{})
		}
		s.parts[subject] = p
	}
	return p
}

// until waits until something holds, which is asked with the lock held, whenever anything has changed.
// It gives up after patience with ErrUnavailable.
func (s *stream) until(ctx context.Context, holds func() (bool, error)) error {
	changed, err := s.look(holds)
	if changed == nil {
		return err
	}
	s.rouse() // what is waited for may be new to the feeder
	late := time.NewTimer(patience)
	defer late.Stop()
	for changed != nil {
		select {
		case <-changed:
			err = nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-late.C:
			err = s.unavailable()
		}
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
		if err != nil {
			return err
		}
		changed, err = s.look(holds)
	}
	return err
}

// unavailable is what callers hear who have waited long enough.
func (s *stream) unavailable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line.missing() && s.errand.tries > askAround {
		return fmt.Errorf("stream %s: %w: no server that was asked has its message %d", s.name, eventlog.ErrUnavailable, s.errand.at+1)
	}
	return fmt.Errorf("stream %s: %w", s.name, eventlog.ErrUnavailable)
}

// look asks once. It gives what to wait for, or nil.
func (s *stream) look(holds func() (bool, error)) (changed chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok, err := holds(); ok || err != nil {
		return nil, err
	}
	s.useLocked()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	s.waiting++
	return s.changed, nil
}

// changedLocked has those who wait look again.
func (s *stream) changedLocked() {
	if s.moved = false; s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// foldedTo waits until the stream is folded up to a sequence that it has.
func (p *part) foldedTo(ctx context.Context, seq streams.Seq) error {
	return p.s.until(ctx, func() (bool, error) { return p.s.foldedLocked(seq), p.ended })
}

// foldedLocked: the stream is folded up to a sequence, of which is taken notice.
func (s *stream) foldedLocked(seq streams.Seq) bool {
	s.line.highest = max(s.line.highest, seq)
	return s.readyLocked() && s.line.at >= seq
}

// sync waits until all is folded that was acknowledged to anyone before the call, as far as the leader
// knows, and until what this process had in doubt is settled.
func (p *part) sync(ctx context.Context) error {
	err := p.s.until(ctx, func() (bool, error) { return p.settledLocked(), p.ended })
	if err != nil {
		return err
	}
	var last streams.Message
	err = p.ask(ctx, func() (err error) {
		last, err = p.s.e.cfg.Storage.Last(ctx, p.s.name, p.subject)
		if errors.Is(err, streams.ErrNoMessage) { // a mark stands for what there was, if there was anything
			var state streams.State
			state, err = p.s.e.cfg.Storage.State(ctx, p.s.name)
			last.Seq = state.Last
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.foldedTo(ctx, last.Seq)
}

// last is the sequence of the partition's newest frame, as the leader knows it; 0 if there is none.
func (p *part) last(ctx context.Context) (seq streams.Seq, err error) {
	err = p.ask(ctx, func() error {
		m, err := p.s.e.cfg.Storage.Last(ctx, p.s.name, p.subject)
		if errors.Is(err, streams.ErrNoMessage) {
			err = nil
		}
		seq = m.Seq
		return err
	})
	return seq, err
}

// noneFrom tells whether the partition has no frame from a sequence on, as the leader knows it. A leader that
// knows less of the stream than this node is not believed: it was cut off from the others, who go on with
// another.
func (p *part) noneFrom(ctx context.Context, from streams.Seq) (bool, error) {
	var state streams.State
	err := p.ask(ctx, func() (err error) {
		state, err = p.s.e.cfg.Storage.State(ctx, p.s.name)
		return err
	})
	if err != nil {
		return false, err
	}
	p.s.mu.Lock()
	folded := p.s.line.at
	p.s.mu.Unlock()
	if state.Last < folded {
		return false, nil
	}
	last, err := p.last(ctx)
	return last < from, err
}

// ask asks the storage, and again for a while where it is unavailable: a new stream is for a moment, and
// one that has lost its leader for some seconds. The error is for callers.
func (p *part) ask(ctx context.Context, do func() error) error {
	for late := time.Now().Add(askPatience); ; {
		err := do()
		if err == nil {
			return nil
		}
		if !errors.Is(err, streams.ErrUnavailable) || time.Now().After(late) {
			return p.storageError(ctx, err)
		}
		if err := p.s.until(ctx, func() (bool, error) { return true, p.ended }); err != nil {
			return err
		}
		if err := sleep.About(ctx, retryPause); err != nil {
			return err
		}
	}
}

// storageError gives what a caller hears of an error of the storage. A stream that is not there may
// be that of a log which was removed.
func (p *part) storageError(ctx context.Context, err error) error {
	p.s.mu.Lock()
	ended := p.ended
	p.s.mu.Unlock()
	switch {
	case ended != nil:
		return ended
	case errors.Is(err, streams.ErrNoStream):
		if log, ok := logOf(p.s.name, p.subject); ok && p.s.e.isRemoved(ctx, log) {
			return eventlog.ErrRemoved
		}
	case errors.Is(err, streams.ErrClosed):
		return eventlog.ErrClosed
	case errors.Is(err, streams.ErrNoSpace):
		return fmt.Errorf("stream %s: %w", p.s.name, eventlog.ErrNoSpace)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("stream %s: %w: %w", p.s.name, eventlog.ErrUnavailable, err)
}

// end stops following, and waits for nothing. What waits in the stream's partitions has ended before.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.rouse()
}

// idleLocked: nobody has used the stream for a while, and nothing is under way. A mark for what was
// stored is waited for, or who comes next would read all of it again.
func (s *stream) idleLocked(now time.Time) bool {
	idle := s.e.cfg.idle
	if s.fold.unmarked.Frames > 0 {
		idle *= 3
	}
	return now.Sub(s.touched) >= idle && s.waiting == 0 && s.watchers == 0 && len(s.active) == 0 && len(s.acks) == 0 && !s.errand.busy
}

// giveUpLocked gives up what is on its way, since the fold is about to pass over where it may lie.
func (s *stream) giveUpLocked() {
	for w := range s.active {
		if w.w.InFlight() {
			w.giveUp()
		}
	}
}

// forgetLocked drops the folds, which are begun anew from a mark. Writers and what was known stay.
func (s *stream) forgetLocked() {
	s.giveUpLocked()
	s.fold.least = max(s.fold.least, s.line.at, s.line.highest)
	s.fold.loaded, s.fold.marks, s.moved = false, nil, true
	s.line.forget()
	for _, p := range s.parts {
		p.fold = nil
		p.index.clear()
		p.restClaimsLocked()
	}
}
