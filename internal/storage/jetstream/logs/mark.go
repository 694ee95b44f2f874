package logs

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// markPartBytes is what one message of a mark measures at most.
const markPartBytes = 1 << 20

// markAt is a mark that the fold has passed.
type markAt struct{ asOf, seq streams.Seq }

// applyMarkLocked takes over what a mark says beyond what the frames do: where partitions begin, and
// numbers that no frame has given, of one that begins with what was imported, or that lacks some of it.
func (s *stream) applyMarkLocked(h heard) {
	frame, err := frames.Decode(h.mark)
	var mark frames.Mark
	if err == nil {
		mark, err = frames.DecodeMark(frame)
	}
	if err != nil {
		s.e.cfg.Log.Error("mark of a stream is damaged", "stream", s.name, "seq", h.seq, "error", err)
		return
	}
	for _, kept := range mark.Partitions {
		p := s.partLocked(kept.Name)
		if state, ok := p.fold.Snapshot(kept.Name); ok && kept.Next > state.Next {
			state.State = kept.State
			p.fold = frames.Restore(h.seq, state)
			p.index.clear() // it has no gap
		}
		if before := p.fold.State().Head; kept.Head.First > before.First {
			p.fold.Trim(kept.Head)
		}
		p.noteLocked()
	}
	if mark.Part == mark.Parts-1 {
		s.fold.marks = append(s.fold.marks, markAt{mark.AsOf, h.seq})
		s.fold.unmarked = frames.Unmarked{}
	}
}

// markDueLocked: it is time for a mark.
func (s *stream) markDueLocked(now time.Time) bool {
	most := s.e.cfg.markFrames
	return s.fold.unmarked.Due(now.UnixMilli()) || most > 0 && s.fold.unmarked.Frames >= most
}

// marksLocked makes the messages of a mark as of now. They are nil where a fold has a hole. change may
// change what is said of a partition.
func (s *stream) marksLocked(now time.Time, change func(*frames.PartitionState)) (messages [][]byte) {
	var states []frames.PartitionState
	for subject, p := range s.parts {
		if p.ended != nil || s.e.removedLocked(s.name, subject) {
			continue
		}
		state, ok := p.fold.Snapshot(subject)
		if !ok {
			return nil
		}
		state.Head.Seq = p.headSeqLocked()
		if change != nil {
			change(&state)
		}
		if state.Next > 0 || len(state.Writers) > 0 {
			states = append(states, state)
		}
	}
	h := frames.Header{Writer: s.e.process, Time: s.e.stamp(now)}
	for _, part := range frames.NewMarks(s.line.at, states, markPartBytes) {
		messages = append(messages, frames.AppendMark(nil, h, part))
	}
	return messages
}

// headSeqLocked is a sequence before which the partition needs no frame; at most what is folded.
func (p *part) headSeqLocked() streams.Seq {
	state := p.fold.State()
	switch {
	case state.Head.First == state.Next:
		return p.s.line.at
	case state.Head.First == 0 && p.began > 0:
		return max(state.Head.Seq, p.began)
	}
	return state.Head.Seq
}

// writeMark stores the messages of a mark. The last one makes it whole.
func (s *stream) writeMark(ctx context.Context, messages [][]byte) (last streams.Seq, err error) {
	for _, message := range messages {
		a, err := s.store(ctx, markSubject, message)
		if err != nil {
			return 0, err
		}
		last = a.seq
	}
	return last, nil
}
