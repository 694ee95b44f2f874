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

const (
	// readAgain is how often what is missing or damaged is read again before somebody asks why: other servers may
	// have it.
	readAgain = 8
	// lossPatience is how long a message is asked for that no server has, and no mark stands for, before the fold
	// goes on without it; all that time every server that keeps the stream was there. Nodes that have folded it
	// write marks meanwhile, of which one is enough for all.
	lossPatience = 5 * time.Minute
	// lossLogged is how often that is said in the log.
	lossLogged = time.Minute
)

// errandState is what the feeder has read for it: one thing at a time, by a goroutine that ends with
// it, so that the feeder itself never waits for the storage.
type errandState struct {
	busy bool
	// next is when the next may begin, after one that failed.
	next time.Time
	// hole is since when something is missing; zero if nothing is.
	hole time.Time
	missing
}

// missing is a message that could not be had, behind at.
type missing struct {
	at streams.Seq
	// tries counts how often it was asked for, with all that lies behind it up to asked.
	tries int
	asked streams.Seq
	// since is when it was missing for the first time since all servers are there, logged when the log has said so last.
	since, logged time.Time
}

// again counts that the message behind at could not be had, and all that the answer had lies before a sequence. What
// lies behind another that was asked for often enough was asked for as often.
func (m *missing) again(at, through streams.Seq, now time.Time) {
	if m.at != at || m.tries == 0 {
		if m.tries < askAround || at >= m.asked {
			m.tries, m.asked = 0, through
		}
		m.at, m.since, m.logged = at, now, now
	}
	if m.tries++; m.tries <= askAround {
		m.asked = min(m.asked, through)
	}
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
	s.room = roomOf(state)
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
	s.fold.passed, s.fold.lossy = false, false
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
	intact := readable(part.Messages)
	found := from
	switch {
	case len(intact) > 0:
		found = intact[0].Seq
	case len(part.Messages) > 0:
		found = part.Messages[0].Seq + 1
	case missing:
		if found, err = emptied(ctx, s.e.cfg.Storage, s.name, from); err != nil {
			return err
		}
	}
	s.mu.Lock()
	for _, m := range intact { // what is behind something that is missing waits for it
		s.line.add(hear(m))
		s.e.cache.put(s.name, m.Seq, m.Data)
	}
	s.news = time.Now()
	if len(part.Messages) == 0 && s.line.missing() { // that server is behind
		s.errand.next = s.news.Add(stalePause)
	}
	s.mu.Unlock()
	if found > from {
		return s.gap(ctx, from, max(found-1, lastOf(intact)))
	}
	return nil
}

// lastOf is the sequence of the last message; 0 if there is none.
func lastOf(messages []streams.Message) streams.Seq {
	if len(messages) == 0 {
		return 0
	}
	return messages[len(messages)-1].Seq
}

// readable leaves out what is damaged, and all behind it: to who follows a stream, that is missing as well.
func readable(messages []streams.Message) []streams.Message {
	for i, m := range messages {
		if h := hear(m); h.damaged != nil && !errors.Is(h.damaged, frames.ErrVersion) {
			return messages[:i]
		}
	}
	return messages
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

// gap decides on messages that a server did not have, from a sequence on; its answer went on to another. Each of them
// was a frame of somebody's, and numbers are counted from all that count: so the fold never goes on without one
// because of what servers say of it, however many they are. It goes on from a mark, which was written by who had
// folded them. Without one it asks again, for as long as it takes: nobody is told anything meanwhile. Only where
// logs were removed that share the stream does nothing stand for what was purged of them; see foldState.mayPass.
func (s *stream) gap(ctx context.Context, from, through streams.Seq) error {
	state, err := s.e.cfg.Storage.State(ctx, s.name)
	if err != nil {
		return err
	}
	purged := holes(state) || state.First > from
	s.mu.Lock()
	hard := s.errand.at == from-1 && s.errand.tries > askAround
	s.mu.Unlock()
	var mark frames.Mark
	if purged || hard {
		if mark, err = s.marks().newest(ctx, state.First); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line.at+1 != from || !s.fold.loaded { // it was heard of meanwhile
		return nil
	}
	now := time.Now()
	if s.errand.again(from-1, through, now); s.errand.tries > askAround {
		s.errand.next = now.Add(quietAge)
	} else {
		s.errand.next = now.Add(stalePause)
	}
	next := s.line.next(through + 1)
	switch {
	case mark.AsOf >= from:
		s.forgetLocked()
		s.restoreLocked(mark)
		return nil
	case purged && s.fold.mayPass(s.name, from, s.e.removedLocked) && s.errand.tries >= askAround:
		s.errand.next, s.fold.passed = time.Time{}, true
	case !s.lostLocked(state, from, next, now):
		return nil
	default:
		s.fold.lossy = true
		s.giveUpLocked()
	}
	s.line.skip(next - 1)
	s.moved = true // there may be nothing behind it that would wake those who wait
	return nil
}

// lostLocked tells whether messages are to be taken for lost for ever, and says in the log that they are missing.
func (s *stream) lostLocked(state streams.State, from, next streams.Seq, now time.Time) bool {
	if state.Absent > 0 {
		s.errand.since = now
	}
	lost := now.Sub(s.errand.since) >= lossPatience
	if lost || now.Sub(s.errand.logged) >= lossLogged || s.errand.tries == askAround {
		s.errand.logged = now
		s.e.cfg.Log.Error("messages of a stream are missing at every server that was asked; see eventyard cluster scrub, and start servers that are away",
			"stream", s.name, "from", from, "to", next-1, "servers-away", state.Absent, "given-up", lost)
	}
	return lost
}

// unreadableLocked reports that what comes next was written by a newer version: who does not know what it does must
// not go on.
func (s *stream) unreadableLocked(h heard) bool {
	if h.damaged == nil {
		return false
	}
	now := time.Now()
	s.errand.next = now.Add(quietAge)
	if s.errand.again(h.seq-1, h.seq, now); s.errand.tries == 1 {
		s.e.cfg.Log.Error("stream was written by a newer version; it is not followed", "stream", s.name, "seq", h.seq)
	}
	return true
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
