package logs

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// sent is a message handed to the storage.
type sent struct {
	subject string
	message []byte
	w       *writer // nil: of nobody who counts
	id      frames.FrameID
	fence   bool
	reply   chan<- ack // nil, or with room for one
}

// ack is what became of it.
type ack struct {
	*sent
	seq streams.Seq
	err error
}

// outbox is what a step of the feeder wants sent.
type outbox []*sent

// feed follows the stream until nobody uses it, or it ends.
func (s *stream) feed(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		submitted := s.submitted.Load()
		stored, answered := s.hearLocked(time.Now())
		s.mu.Unlock()
		s.e.announce(s.name, stored)
		gather(answered, submitted, &s.submitted)
		s.mu.Lock()
		out, wait := s.stepLocked(ctx, time.Now())
		over := s.closing && !s.errand.busy || s.idleLocked(time.Now())
		deaf := func() {}
		if over {
			deaf = s.stopLocked()
		}
		s.mu.Unlock()
		for _, m := range out { // in their order
			s.publish(m)
		}
		if over {
			deaf()
			return
		}
		timer.Reset(wait)
		select {
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// stopLocked: the feeder ends, and a later use begins anew. It gives what is left to do without the
// lock.
func (s *stream) stopLocked() (deaf func()) {
	if deaf = s.unheard; deaf == nil {
		deaf = func() {}
	}
	s.unheard = nil
	s.forgetLocked()
	s.running = false
	s.changedLocked()
	return deaf
}

// hearLocked takes notice of all answers of the storage, folds, and answers those whose batches are
// stored. It gives what the storage has stored, and how many small batches were answered.
func (s *stream) hearLocked(now time.Time) (stored []ack, answered int) {
	acks := s.acks
	s.acks = nil
	for _, a := range acks {
		s.ackedLocked(a, now)
		if a.err == nil {
			stored = append(stored, a)
		}
	}
	s.foldLocked(now)
	if !s.readyLocked() {
		return stored, 0
	}
	for w := range s.active {
		answered += w.answer()
	}
	if s.moved {
		s.changedLocked()
	}
	return stored, answered
}

// gather lets those who were answered come back before anything is sent: the first of them would
// otherwise have a frame to itself, and the others wait for its answer. Before is how much had been
// submitted when they were answered.
func gather(answered int, before int64, submitted *atomic.Int64) {
	if answered > 1 {
		sleep.GiveWay(answered, func() int { return int(submitted.Load() - before) })
	}
}

// stepLocked does all that can be done now, and says how long there is nothing to do unless something
// comes.
func (s *stream) stepLocked(ctx context.Context, now time.Time) (out outbox, wait time.Duration) {
	wait = s.e.cfg.idle
	for w := range s.active {
		wait = min(wait, w.drive(now, &out))
	}
	if s.moved {
		s.changedLocked()
	}
	return out, max(min(wait, s.runErrandLocked(ctx, now)), time.Millisecond)
}

// ackedLocked takes notice of an answer of the storage.
func (s *stream) ackedLocked(a ack, now time.Time) {
	if a.err == nil {
		s.line.add(hear(streams.Message{Seq: a.seq, Subject: a.subject, Data: a.message}))
		s.e.cache.put(s.name, a.seq, a.message)
		s.news = now
	}
	if a.w != nil {
		a.w.acked(a, now)
	}
}

// announce tells other nodes what a stream has stored.
func (e *Engine) announce(stream string, stored []ack) {
	var news []byte
	for _, a := range stored {
		if len(a.message) > maxAnnouncedMark && a.subject == markSubject {
			continue
		}
		if news = appendAnnounced(news, a.seq, a.subject, a.message); len(news) > maxAnnounced-maxAnnouncedMark {
			e.cfg.Storage.Announce(stream, news)
			news = nil
		}
	}
	if news != nil {
		e.cfg.Storage.Announce(stream, news)
	}
}

func (s *stream) publish(m *sent) {
	s.e.cfg.Storage.Publish(s.name, m.subject, m.message, func(seq streams.Seq, err error) {
		s.e.outcome.note(s.name, err)
		s.mu.Lock()
		s.acks = append(s.acks, ack{m, seq, err})
		s.mu.Unlock()
		if m.reply != nil {
			m.reply <- ack{m, seq, err}
		}
		s.rouse()
	})
}

// hear takes notice of an announcement. One that cannot be read is missed, and found missing.
func (s *stream) hear(data []byte) {
	all, err := decodeAnnouncement(data)
	if err != nil {
		return
	}
	s.mu.Lock()
	for _, h := range all {
		s.line.add(h)
	}
	s.news = time.Now()
	s.mu.Unlock()
	s.rouse()
}

// foldLocked folds what is next in line, and tells writers and readers.
func (s *stream) foldLocked(now time.Time) {
	if !s.fold.loaded {
		return
	}
	var changed []*part
	for {
		at := s.line.at
		h, ok := s.line.take()
		if !ok {
			break
		}
		if s.unreadableLocked(h) {
			s.line.at = at // it is read again
			break
		}
		s.moved = true
		p := s.applyLocked(h, now)
		if !s.fold.loaded { // it disagreed, and all is to be read anew
			return
		}
		if p != nil && (len(changed) == 0 || changed[len(changed)-1] != p) {
			changed = append(changed, p)
		}
	}
	if !s.readyLocked() {
		return
	}
	for _, p := range changed {
		p.noteLocked()
	}
	if s.markDueLocked(now) {
		select {
		case s.e.due <- struct{}{}:
		default: // it is known
		}
	}
}

// applyLocked folds one message. It gives the partition whose bounds may have changed.
func (s *stream) applyLocked(h heard, now time.Time) *part {
	if h.subject == markSubject {
		s.applyMarkLocked(h)
		return nil
	}
	s.fold.unmarked.Add(h.header.Bytes(), now.UnixMilli())
	s.room.add(h.seq, int64(h.header.Bytes()))
	p := s.partLocked(h.subject)
	before := p.fold.State()
	verdict := p.fold.Apply(h.seq, h.header)
	if verdict.Outcome == frames.Hole {
		// Of a removed log this may be the last that was heard, and what was before it purged: nobody needs its numbers.
		if !s.e.removedLocked(s.name, h.subject) && s.fold.doubt(h.seq, h.subject) {
			s.e.cfg.Log.Warn("frame disagrees with what was read; stream is read anew", "stream", s.name, "seq", h.seq)
			s.forgetLocked()
			return nil
		}
		if s.fold.lossy {
			p.index.clear() // it has no gap
			verdict = p.fold.ApplyBehind(h.seq, h.header)
		} else {
			verdict = p.fold.ApplyAnyway(h.seq, h.header)
		}
	}
	p.seenLocked(frames.Seen{At: h.seq, Header: h.header, Verdict: verdict})
	if verdict.Outcome != frames.Counted {
		return nil
	}
	if before.Next == 0 {
		p.began = h.seq
	}
	p.index.add(spot{seq: h.seq, first: verdict.First, events: h.header.Events, time: verdict.Time, before: before.Bytes}, s.e.cfg.indexFrames)
	return p
}
