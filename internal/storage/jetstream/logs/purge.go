package logs

import (
	"context"

	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// thinSteps is how many times at most the old frames of one partition are purged in one go.
const thinSteps = 64

// purge removes what nobody needs any more: the stream's beginning, and where that is held up by a
// partition that keeps old events, the old frames of the others. Readers begin with a mark: nothing
// behind the newest one goes from which everybody who wants an event that is kept can begin.
func (s tending) purge(ctx context.Context) error {
	state, err := s.e.cfg.Storage.State(ctx, s.name)
	if err != nil {
		return err
	}
	below, err := s.passed(ctx, state)
	if err != nil {
		return err
	}
	if below > state.First {
		if err := s.e.cfg.Storage.Purge(ctx, s.name, "", below); err != nil {
			return err
		}
		if state, err = s.e.cfg.Storage.State(ctx, s.name); err != nil {
			return err
		}
	}
	return s.thin(ctx, state)
}

// passed gives the sequence below which the stream needs nothing. The marks that were seen tell, and
// those in the storage where they do not, once for each place that the stream may begin at.
func (s tending) passed(ctx context.Context, state streams.State) (below streams.Seq, err error) {
	s.mu.Lock()
	if !s.readyLocked() {
		s.mu.Unlock()
		return 0, nil
	}
	least := s.leastLocked()
	for len(s.fold.marks) > 0 && s.fold.marks[0].asOf < least {
		below = s.fold.marks[0].asOf + 1
		s.fold.marks = s.fold.marks[1:]
	}
	search := below == 0 && s.fold.searched != least && state.First < least
	if search {
		s.fold.searched = least
	}
	s.mu.Unlock()
	if search {
		return s.markBefore(ctx, state, least)
	}
	return below, nil
}

// leastLocked is the sequence before which no partition needs a frame.
func (s tending) leastLocked() streams.Seq {
	least := s.line.at
	for subject, p := range s.parts {
		if p.ended == nil && !s.e.removedLocked(s.name, subject) && p.fold.State().Next > 0 {
			least = min(least, p.headSeqLocked())
		}
	}
	return least
}

// markBefore gives the first sequence behind the newest mark as of before a sequence; 0 if there is none.
func (s tending) markBefore(ctx context.Context, state streams.State, seq streams.Seq) (streams.Seq, error) {
	mark, _, err := s.marks().search(ctx, state, func(mark *frames.Mark) bool { return mark.AsOf < seq })
	if err != nil || mark == nil {
		return 0, err
	}
	return mark.AsOf + 1, nil
}

// old is a partition that may have frames which nobody needs.
type old struct {
	subject string
	head    frames.Head
	held    int64
}

// thin removes by subject, where the stream holds more than twice what its partitions keep. That stops
// the stream for a moment and leaves holes in it, so that it is not done for less.
func (s tending) thin(ctx context.Context, state streams.State) error {
	for _, o := range s.tooOld(state) {
		if err := s.thinPart(ctx, state, o); err != nil {
			return err
		}
	}
	return nil
}

// tooOld gives the partitions whose frames may be old.
func (s tending) tooOld(state streams.State) (all []old) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.readyLocked() {
		return nil
	}
	var held int64
	for subject, p := range s.parts {
		if p.ended != nil || s.e.removedLocked(s.name, subject) {
			continue
		}
		kept := p.fold.State()
		held += kept.Held()
		if kept.Head.First > 0 {
			head := kept.Head
			head.Seq = p.headSeqLocked()
			all = append(all, old{subject, head, kept.Held()})
		}
	}
	if state.Bytes <= 2*held+s.e.cfg.thinBytes {
		return nil
	}
	return all
}

// thinPart removes the old frames of one partition where they are more than what it keeps.
func (s tending) thinPart(ctx context.Context, state streams.State, o old) error {
	first, err := s.next(ctx, o.subject, state.First)
	if err != nil || first == 0 || first >= o.head.Seq {
		return err
	}
	mark, _, ok, err := s.marks().from(ctx, first)
	if err != nil || !ok {
		return err
	}
	if kept, _ := mark.Find(o.subject); o.head.Bytes-kept.Bytes <= max(o.held, s.e.cfg.thinBytes) {
		return nil
	}
	below, err := s.markBefore(ctx, state, o.head.Seq)
	if err != nil {
		return err
	}
	for range thinSteps {
		if first == 0 || first >= below {
			return nil
		}
		end := min(below, first+purgeMessages) // of the subject these are not more
		if err := s.e.cfg.Storage.Purge(ctx, s.name, o.subject, end); err != nil {
			return err
		}
		if first, err = s.next(ctx, o.subject, end); err != nil {
			return err
		}
	}
	return nil
}

// next gives the sequence of the first message of a subject from another on; 0 if there is none.
func (s tending) next(ctx context.Context, subject string, from streams.Seq) (streams.Seq, error) {
	part, err := s.e.cfg.Storage.Read(ctx, s.name, streams.Query{From: from, Subject: subject, MaxMessages: 1, MaxBytes: 1})
	if err != nil || len(part.Messages) == 0 {
		return 0, err
	}
	return part.Messages[0].Seq, nil
}
