package logs

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// What is read at once to catch up.
const (
	fetchMessages = 1024
	fetchBytes    = 4 << 20
)

// readAgain is how often what is missing or damaged is read again before it is given up: other
// servers may have it.
const readAgain = 8

// errandState is what the feeder has read for it: one thing at a time, by a goroutine that ends with
// it, so that the feeder itself never waits for the storage.
type errandState struct {
	busy bool
	// next is when the next may begin, after one that failed.
	next time.Time
	// hole is since when something is missing; zero if nothing is.
	hole time.Time
	// tries counts how often the message behind at was found missing or damaged.
	at    streams.Seq
	tries int
}

// runErrandLocked has something read if that is due, and says how long it is not.
func (s *stream) runErrandLocked(ctx context.Context, now time.Time) (wait time.Duration) {
	wait, do := s.errandLocked(now)
	if do == nil || wait > 0 {
		return wait
	}
	s.errand.busy = true
	s.e.start(func(context.Context) {
		err := do(ctx)
		s.mu.Lock()
		s.errand.busy = false
		if err != nil {
			s.errand.next = time.Now().Add(retryPause)
		}
		s.mu.Unlock()
		s.rouse()
	})
	return s.e.cfg.idle
}

// errandLocked says what is to be read, and when.
func (s *stream) errandLocked(now time.Time) (wait time.Duration, do func(context.Context) error) {
	never := s.e.cfg.idle
	if s.errand.busy || s.closing {
		return never, nil
	}
	if pause := s.errand.next.Sub(now); pause > 0 {
		return pause, s.fetch
	}
	if !s.fold.loaded {
		return 0, s.load
	}
	if s.line.missing() {
		if s.errand.hole.IsZero() {
			s.errand.hole = now
		}
		if s.waiting > 0 || !s.readyLocked() {
			return 0, s.fetch
		}
		return s.errand.hole.Add(holeAge).Sub(now), s.fetch
	}
	s.errand.hole = time.Time{}
	if s.watchers > 0 {
		return s.news.Add(quietAge).Sub(now), s.fetch
	}
	return never, nil
}

// load begins to follow: with the newest mark, or with the beginning.
func (s *stream) load(ctx context.Context) error {
	if err := s.listen(); err != nil {
		return err
	}
	state, err := s.e.cfg.Storage.State(ctx, s.name)
	if err != nil {
		if errors.Is(err, streams.ErrNoStream) {
			s.lost(ctx)
		}
		return err
	}
	mark, err := s.marks().newest(ctx, state.First)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restoreLocked(mark)
	s.line.highest = max(s.line.highest, state.Last)
	s.fold.least = max(s.fold.least, state.Last)
	s.news = time.Now()
	return nil
}

// listen hears announcements from now on.
func (s *stream) listen() error {
	s.mu.Lock()
	listening := s.unheard != nil
	s.mu.Unlock()
	if listening {
		return nil
	}
	stop, err := s.e.cfg.Storage.Listen(s.name, s.hear)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unheard = stop
	return nil
}

// restoreLocked begins the folds as of a mark.
func (s *stream) restoreLocked(m frames.Mark) {
	s.fold.loaded, s.fold.begun, s.fold.unmarked, s.moved = true, m.AsOf, frames.Unmarked{}, true
	s.line.skip(m.AsOf)
	for subject, p := range s.parts {
		if _, there := m.Find(subject); !there {
			p.fold, p.began = frames.Restore(m.AsOf, frames.PartitionState{}), 0
		}
	}
	for _, state := range m.Partitions {
		p := s.partLocked(state.Name)
		p.fold, p.began = frames.Restore(m.AsOf, state), 0
	}
}

// fetch reads what comes next.
func (s *stream) fetch(ctx context.Context) error {
	s.mu.Lock()
	from, loaded, missing := s.line.at+1, s.fold.loaded, s.line.missing()
	s.mu.Unlock()
	if !loaded {
		return s.load(ctx)
	}
	part, err := s.e.cfg.Storage.Read(ctx, s.name, streams.Query{From: from, MaxMessages: fetchMessages, MaxBytes: fetchBytes})
	if err != nil {
		if errors.Is(err, streams.ErrNoStream) {
			s.lost(ctx)
		}
		return err
	}
	found := from
	if len(part.Messages) > 0 {
		found = part.Messages[0].Seq
	} else if missing {
		if found, err = emptied(ctx, s.e.cfg.Storage, s.name, from); err != nil {
			return err
		}
	}
	if found > from {
		if err := s.gap(ctx, from, found); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = time.Now()
	next := s.line.at + 1
	for _, m := range part.Messages {
		if m.Seq > next {
			break // what is missing comes first
		}
		s.line.add(hear(m))
		s.e.cache.put(s.name, m.Seq, m.Data)
		next = max(next, m.Seq+1)
	}
	if len(part.Messages) == 0 && s.line.missing() { // that server is behind
		s.errand.next = s.news.Add(stalePause)
	}
	return nil
}

// againLocked counts that the message behind at could not be had. It is true as long as it is worth
// trying again.
func (s *stream) againLocked(at streams.Seq) bool {
	if s.errand.at != at {
		s.errand.at, s.errand.tries = at, 0
	}
	s.errand.tries++
	s.errand.next = time.Now().Add(stalePause)
	return s.errand.tries <= readAgain
}

// holes: messages were removed from the middle of a stream, by subject.
func holes(state streams.State) bool { return uint64(state.Last-state.First+1) != state.Messages }

// emptied gives the sequence behind what is missing where a server had nothing from one on; 0: another
// server has it. If the leader says that it was given, and has no message from there on, all of it was
// purged, of logs that were removed. State comes first: what is stored between the two questions is
// not among what is passed over.
func emptied(ctx context.Context, storage streams.Storage, stream string, from streams.Seq) (streams.Seq, error) {
	state, err := storage.State(ctx, stream)
	if err != nil || state.Last < from {
		return 0, err
	}
	last, err := storage.Last(ctx, stream, "")
	switch {
	case errors.Is(err, streams.ErrNoMessage):
	case err != nil || last.Seq >= from:
		return 0, err
	}
	return state.Last + 1, nil
}

// gap decides on messages that a server did not have, from a sequence on to before another. It goes on
// behind them where the stream has lost them: its beginning, or the old frames of one partition, which
// a mark stands for, or what was purged of a removed log, which is nothing to the others. Else another
// server has them.
func (s *stream) gap(ctx context.Context, from, found streams.Seq) error {
	state, err := s.e.cfg.Storage.State(ctx, s.name)
	if err != nil {
		return err
	}
	var mark frames.Mark
	// Where the beginning is gone, and no mark stands for it, it was that of removed logs.
	purged := holes(state) || state.First > from
	if purged {
		if mark, err = s.marks().newest(ctx, state.First); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line.at+1 != from || !s.fold.loaded { // it was heard of meanwhile
		return nil
	}
	again := s.againLocked(from - 1)
	switch {
	case mark.AsOf >= from:
		s.forgetLocked()
		s.restoreLocked(mark)
		return nil
	case purged && s.errand.tries > 1:
		s.errand.next = time.Time{}
	case again:
		return nil
	default:
		s.e.cfg.Log.Error("messages of a stream are missing", "stream", s.name, "from", from, "to", found-1)
		s.giveUpLocked()
	}
	s.line.skip(found - 1)
	s.moved = true // there may be nothing behind it that would wake those who wait
	return nil
}

// unreadableLocked reports that what comes next was damaged when it was read, and that it is to be
// read again.
func (s *stream) unreadableLocked(h heard) bool {
	switch {
	case h.damaged == nil:
		return false
	case s.againLocked(h.seq - 1):
		return true
	case errors.Is(h.damaged, frames.ErrVersion):
		if s.errand.tries == readAgain+1 {
			s.e.cfg.Log.Error("stream was written by a newer version; it is not followed", "stream", s.name, "seq", h.seq)
		}
		s.errand.next = time.Now().Add(quietAge)
		return true // for ever: who does not know what it does must not go on
	}
	s.e.cfg.Log.Error("message of a stream is damaged", "stream", s.name, "seq", h.seq, "error", h.damaged)
	return false
}

// lost: the stream is not there. If its log was removed, all who use it hear of it; otherwise there
// is nothing to be done but to say so.
func (s *stream) lost(ctx context.Context) {
	log, ok := hubLog(s.name)
	if ok && s.e.isRemoved(ctx, log) {
		return
	}
	s.e.cfg.Log.Error("stream is not there", "stream", s.name)
}
