package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// What a reader reads ahead.
const (
	readMessages = 256
	readBytes    = 256 << 10
)

var (
	// errNotRead: it would have to be read, and may not.
	errNotRead = errors.New("not in memory")
	// errOvertaken: it is to be looked for anew: the partition begins later now, or another server may have it.
	errOvertaken = errors.New("overtaken by retention")
)

// reader fetches the frames of one partition, one after the other. Near the end the index says which
// frames count; before it the reader folds for itself. One goroutine uses it.
type reader struct {
	// batches are those of the frame that was read last, from the place on that was asked for.
	batches []stored
	// ahead are messages of the partition, without a gap from from on.
	ahead []streams.Message
	from  streams.Seq
	// fold is the reader's own, before the index; nil: none. It was begun for a number.
	fold  *frames.Partition
	begun eventlog.Sequence
	// tries is how often the fold was begun anew, since something was missing at a number.
	tries   int
	missing eventlog.Sequence
}

func (r *reader) rest() { *r = reader{} }

// clone gives one that reads on without changing this one. Folds are not shared.
func (r *reader) clone() reader {
	return reader{batches: r.batches, ahead: r.ahead, from: r.from}
}

// find has batches[0] be the batch with the event at a number, or of the oldest kept where that is
// gone. It is false at the end, and where mayRead is false and something had to be read.
func (r *reader) find(ctx context.Context, p *part, at eventlog.Sequence, mayRead bool) (bool, eventlog.Sequence, error) {
	for {
		v, err := p.view(ctx, at, mayRead)
		if err != nil || !v.there {
			return false, v.at, err
		}
		at = v.at
		if r.holds(at) {
			return true, at, nil
		}
		if v.indexed {
			r.fold = nil
			err = r.readSpot(ctx, p, v.spot, mayRead)
		} else {
			err = r.readFolding(ctx, p, at, v, mayRead)
		}
		if err == errNotRead {
			return false, at, nil
		}
		if err == errOvertaken {
			err = nil
		}
		if err != nil {
			return false, at, err
		}
	}
}

// holds drops batches before a number, and reports whether the next one has it.
func (r *reader) holds(at eventlog.Sequence) bool {
	for len(r.batches) > 0 && r.batches[0].next() <= at {
		r.batches = r.batches[1:]
	}
	return len(r.batches) > 0 && r.batches[0].first <= at
}

// view is what the fold of all says of a place.
type view struct {
	at      eventlog.Sequence // the place, or the oldest kept
	there   bool              // it has an event
	indexed bool
	spot    spot // the frame with it, if it is indexed
	// indexNext and indexSeq are where the index begins.
	indexNext eventlog.Sequence
	indexSeq  streams.Seq
}

// view looks. It waits for the stream to be loaded only if it may.
func (p *part) view(ctx context.Context, at eventlog.Sequence, mayWait bool) (v view, err error) {
	look := func() (bool, error) {
		v = view{at: at}
		if p.ended != nil || !p.s.readyLocked() {
			return !mayWait, p.ended
		}
		p.s.touched = time.Now()
		state := p.fold.State()
		v.at = max(at, state.Head.First)
		v.there = v.at < state.Next
		v.spot, v.indexed = p.index.find(v.at)
		v.indexNext, v.indexSeq = state.Next, p.s.line.at+1
		if oldest, ok := p.index.first(); ok {
			v.indexNext, v.indexSeq = oldest.first, oldest.seq
		}
		return true, nil
	}
	err = p.s.until(ctx, look)
	return v, err
}

// where names the partition in errors.
func (p *part) where() string { return fmt.Sprintf("stream %s, subject %s", p.s.name, p.subject) }

// readSpot reads a frame that is known to count.
func (r *reader) readSpot(ctx context.Context, p *part, at spot, mayRead bool) error {
	var reason error
	for try := range readAgain {
		message, err := r.message(ctx, p, at.seq, at.first, mayRead, try > 0)
		if err == errLost {
			reason = err
			break
		}
		if err != nil {
			return err
		}
		frame, err := frames.Decode(message)
		if err == nil && frame.Events == at.events {
			r.batches, err = decodeFrame(nil, frame, at.first, at.time)
			if err == nil {
				return nil
			}
		}
		reason = err
		if !mayRead {
			return errNotRead
		}
	}
	if reason == nil {
		reason = frames.ErrMalformed
	}
	return &eventlog.CorruptError{Where: p.where(), First: at.first, Next: at.next(), Reason: reason.Error()}
}

// message gives the message at a sequence, which is there: from what was read ahead, from the cache,
// or from the storage.
func (r *reader) message(ctx context.Context, p *part, seq streams.Seq, number eventlog.Sequence, mayRead, anew bool) ([]byte, error) {
	if !anew {
		if i, ok := slices.BinarySearchFunc(r.ahead, seq, func(m streams.Message, seq streams.Seq) int {
			return int(int64(m.Seq) - int64(seq))
		}); ok {
			message := r.ahead[i].Data
			r.ahead, r.from = r.ahead[i+1:], seq+1
			return message, nil
		}
		if message, ok := p.s.e.cache.get(p.s.name, seq); ok {
			return message, nil
		}
	}
	if !mayRead {
		return nil, errNotRead
	}
	late := time.Now().Add(patience)
	for try := 0; ; {
		if _, err := r.read(ctx, p, seq); err != nil {
			return nil, err
		}
		if len(r.ahead) > 0 && r.ahead[0].Seq == seq {
			message := r.ahead[0].Data
			r.ahead, r.from = r.ahead[1:], seq+1
			return message, nil
		}
		if try++; try%readAgain == 0 { // it is gone there, or that server is behind
			if err := p.gone(ctx, seq, number); !isMissing(err) || err == errLost && len(r.ahead) > 0 && try >= askAround {
				return nil, err
			}
		}
		if time.Now().After(late) {
			return nil, fmt.Errorf("%s: %w: no server has message %d", p.where(), eventlog.ErrUnavailable, seq)
		}
		if err := sleep.For(ctx, stalePause, nil); err != nil {
			return nil, err
		}
	}
}

// read reads ahead, from a sequence on. Through is what the server had, as far as it said so.
func (r *reader) read(ctx context.Context, p *part, from streams.Seq) (through streams.Seq, err error) {
	q := streams.Query{From: from, Subject: p.subject, MaxMessages: readMessages, MaxBytes: readBytes}
	var answer streams.Part
	err = p.ask(ctx, func() (err error) {
		answer, err = p.s.e.cfg.Storage.Read(ctx, p.s.name, q)
		return err
	})
	if err != nil {
		return 0, err
	}
	r.ahead, r.from = answer.Messages, from
	return answer.Through, nil
}

// endOf is the head of a partition of which all is gone up to a state.
func endOf(asOf streams.Seq, s frames.State) frames.Head {
	return frames.Head{First: s.Next, Seq: asOf, Bytes: s.Bytes}
}

// beginsAt moves the head, if that is where it is not yet, and gives its number.
func (p *part) beginsAt(head frames.Head) eventlog.Sequence {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.fold == nil {
		return 0
	}
	p.fold.Trim(head)
	p.noteLocked()
	return p.fold.State().Head.First
}

// readFolding reads the next frame before the index.
func (r *reader) readFolding(ctx context.Context, p *part, at eventlog.Sequence, v view, mayRead bool) error {
	if r.fold == nil || r.fold.State().Next > at {
		if !mayRead {
			return errNotRead
		}
		fold, err := p.foldBefore(ctx, func(s frames.State) bool { return s.Before(at) })
		if err != nil {
			return err
		}
		if r.fold, r.begun = fold, at; fold.State().Next > at {
			if p.beginsAt(endOf(fold.At(), fold.State())) > at {
				return errOvertaken
			}
			return r.lost(ctx, p, at, v)
		}
	}
	for try := 0; ; try++ {
		m, ok, err := r.next(ctx, p, r.fold.At()+1, v.indexSeq, mayRead)
		if err != nil {
			return err
		}
		if !ok {
			return r.lost(ctx, p, at, v)
		}
		h, err := frames.DecodeHeader(m.Data)
		if err == nil {
			return r.apply(ctx, p, m, h, at, v)
		}
		if r.ahead = nil; try == readAgain {
			return p.damage(ctx, at, m.Seq, v, err)
		}
	}
}

// apply folds a frame, and takes its batches if it counts and has not been passed.
func (r *reader) apply(ctx context.Context, p *part, m streams.Message, h frames.Header, at eventlog.Sequence, v view) error {
	verdict := r.fold.Apply(m.Seq, h)
	switch {
	case verdict.Outcome == frames.Hole:
		return r.lost(ctx, p, at, v)
	case verdict.Outcome != frames.Counted || verdict.First+eventlog.Sequence(h.Events) <= at:
		return nil
	}
	frame, err := frames.Decode(m.Data)
	if err == nil {
		r.batches, err = decodeFrame(nil, frame, verdict.First, verdict.Time)
	}
	if err != nil {
		next := verdict.First + eventlog.Sequence(h.Events)
		return &eventlog.CorruptError{Where: p.where(), First: verdict.First, Next: next, Reason: err.Error()}
	}
	return nil
}

// next gives the next message of the partition from a sequence on, and before another. It is false if
// there is none.
func (r *reader) next(ctx context.Context, p *part, from, before streams.Seq, mayRead bool) (streams.Message, bool, error) {
	late := time.Now().Add(patience)
	for try := 1; ; try++ {
		for len(r.ahead) > 0 && r.ahead[0].Seq < from {
			r.ahead = r.ahead[1:]
		}
		if len(r.ahead) > 0 && r.from <= from {
			m := r.ahead[0]
			if m.Seq >= before {
				return streams.Message{}, false, nil
			}
			r.ahead, r.from = r.ahead[1:], m.Seq+1
			return m, true, nil
		}
		if !mayRead {
			return streams.Message{}, false, errNotRead
		}
		through, err := r.read(ctx, p, from)
		switch {
		case err != nil:
			return streams.Message{}, false, err
		case len(r.ahead) > 0:
			continue
		case through >= before:
			return streams.Message{}, false, nil
		case try%readAgain == 0: // that server is behind, or there is none
			if none, err := p.noneFrom(ctx, from); err != nil || none {
				return streams.Message{}, false, err
			}
		case time.Now().After(late):
			return streams.Message{}, false, fmt.Errorf("%s: %w: no server has what is behind message %d", p.where(), eventlog.ErrUnavailable, from-1)
		}
		if err := sleep.For(ctx, stalePause, nil); err != nil {
			return streams.Message{}, false, err
		}
	}
}
