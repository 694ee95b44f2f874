package logs

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// seek puts a cursor at a position.
func (c *cursor) seek(ctx context.Context, at eventlog.Position) error {
	number, byNumber := at.Sequence()
	if !byNumber && !at.IsEarliest() {
		if err := c.part.sync(ctx); err != nil {
			return err
		}
	}
	b, err := c.part.bounds(ctx)
	if err != nil {
		return err
	}
	if byNumber && number > b.Next { // it may be known elsewhere
		if err := c.part.sync(ctx); err != nil {
			return err
		}
		if b, err = c.part.bounds(ctx); err != nil {
			return err
		}
		if number > b.Next {
			return &eventlog.PositionError{Asked: number, Last: b.Last()}
		}
	}
	since, byTime := at.Time()
	created, byCreated := at.Created()
	switch {
	case byNumber:
		c.at = max(number, b.First)
	case at.IsLatest():
		c.at = b.Next
	case byTime:
		return c.seekTime(ctx, b, since)
	case byCreated:
		c.at = b.First
		return c.seekBatch(ctx, b.Next, func(b *stored) bool { return !time.UnixMilli(b.created).Before(created) })
	case at.IsGreatestCreated():
		return c.seekGreatest(ctx, b)
	default:
		c.at = b.First
	}
	return nil
}

// seekTime goes to the first event enqueued at a time or later.
func (c *cursor) seekTime(ctx context.Context, b eventlog.Bounds, since time.Time) error {
	later := func(b *stored) bool { return !time.UnixMilli(b.time).Before(since) }
	c.at = b.First
	if b.LastTime.Before(since) {
		c.at = b.Next
		return nil
	}
	if found, ok := c.part.indexedSince(since); ok {
		c.at = max(c.at, found.first)
		return c.seekBatch(ctx, b.Next, later)
	}
	fold, err := c.part.foldBefore(ctx, func(s frames.State) bool { return time.UnixMilli(s.Time).Before(since) })
	if err != nil {
		return err
	}
	if next := fold.State().Next; next > c.at {
		c.at, c.r.fold = next, fold
	}
	return c.seekBatch(ctx, b.Next, later)
}

// indexedSince gives the first frame of a time or later, if it is in the index.
func (p *part) indexedSince(since time.Time) (found spot, ok bool) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.fold == nil {
		return spot{}, false
	}
	oldest, _ := p.index.first()
	return p.index.where(oldest.first <= p.fold.State().Head.First, func(s spot) bool { return !time.UnixMilli(s.time).Before(since) })
}

// seekBatch goes on to the first batch of which something holds, but not past end. What cannot be read is
// passed by.
func (c *cursor) seekBatch(ctx context.Context, end eventlog.Sequence, holds func(*stored) bool) error {
	for c.at < end {
		there, err := c.find(ctx, true)
		if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok && damage.Next > c.at {
			c.at = damage.Next
			continue
		}
		if err != nil || !there {
			return err
		}
		if b := &c.r.batches[0]; !holds(b) {
			c.at = b.next()
			continue
		}
		return nil
	}
	return nil
}

// seekGreatest goes to the first batch with the greatest create time.
func (c *cursor) seekGreatest(ctx context.Context, b eventlog.Bounds) error {
	greatest, found := int64(0), false
	best := b.Next
	c.at = b.First
	err := c.seekBatch(ctx, b.Next, func(b *stored) bool {
		if !found || b.created > greatest {
			greatest, best, found = b.created, b.first, true
		}
		return false
	})
	c.r.rest()
	c.at = best
	return err
}

// foldBefore gives the partition's fold as of the newest mark of which something holds, which holds of
// all marks before it, too; of none, as of the beginning, or of the oldest mark where that is gone.
func (p *part) foldBefore(ctx context.Context, holds func(frames.State) bool) (fold *frames.Partition, err error) {
	err = p.ask(ctx, func() (err error) {
		fold, err = p.searchMarks(ctx, holds)
		return err
	})
	return fold, err
}

func (p *part) searchMarks(ctx context.Context, holds func(frames.State) bool) (*frames.Partition, error) {
	state, err := p.s.e.cfg.Storage.State(ctx, p.s.name)
	if err != nil {
		return nil, err
	}
	best, oldest, err := p.s.marks().search(ctx, state, func(mark *frames.Mark) bool {
		kept, _ := mark.Find(p.subject)
		return holds(kept.State)
	})
	if err != nil {
		return nil, err
	}
	switch {
	case best != nil:
		oldest = best
	case state.First <= 1:
		return frames.NewPartition(), nil
	case oldest == nil:
		return frames.Restore(state.First-1, frames.PartitionState{}), nil
	}
	kept, _ := oldest.Find(p.subject)
	return frames.Restore(oldest.AsOf, kept), nil
}

// marks reads the marks of a stream.
type marks struct {
	storage streams.Storage
	stream  string
}

func (s *stream) marks() marks { return marks{s.e.cfg.Storage, s.name} }

// search gives the newest mark of which something holds that holds of all marks before it, too, and the
// oldest of which it does not, of those that it looked at; nil where there is none.
func (s marks) search(ctx context.Context, state streams.State, holds func(*frames.Mark) bool) (best, oldest *frames.Mark, err error) {
	for low, high := state.First, state.Last+1; low < high; {
		middle := low + (high-low)/2
		mark, last, ok, err := s.from(ctx, middle)
		if err != nil {
			return nil, nil, err
		}
		if !ok || last >= high {
			high = middle
			continue
		}
		switch usable := mark.AsOf+1 >= state.First; {
		case !usable: // it came late: what lies behind it is gone
			low = last + 1
		case holds(&mark):
			best, low = &mark, last+1
		default:
			oldest, high = &mark, middle
		}
	}
	return best, oldest, nil
}

// from gives the first whole mark at a sequence or later, and where it ends.
func (s marks) from(ctx context.Context, from streams.Seq) (mark frames.Mark, last streams.Seq, ok bool, err error) {
	var parts []frames.Mark
	var writer frames.WriterID
	for {
		answer, err := s.storage.Read(ctx, s.stream, streams.Query{From: from, Subject: markSubject, MaxMessages: 1, MaxBytes: 1})
		if err != nil || len(answer.Messages) == 0 {
			return frames.Mark{}, 0, false, err
		}
		m := answer.Messages[0]
		from = m.Seq + 1
		frame, err := frames.Decode(m.Data)
		if err != nil {
			continue // another one will do
		}
		part, err := frames.DecodeMark(frame)
		if err != nil {
			continue
		}
		if part.Part == 0 || frame.Writer != writer || len(parts) == 0 || parts[0].AsOf != part.AsOf {
			parts, writer = nil, frame.Writer
		}
		parts = append(parts, part)
		if mark, ok := frames.JoinMarks(parts); ok {
			return mark, m.Seq, true, nil
		}
	}
}

// newest gives the newest whole mark of a stream that begins with a sequence; the zero Mark, which is that
// of the beginning, if there is none. A mark may come late, when what lies behind it is gone, or when newer
// ones lie before it: then that of the latest state is given, of those that are left.
func (s marks) newest(ctx context.Context, first streams.Seq) (frames.Mark, error) {
	last, err := s.storage.Last(ctx, s.stream, markSubject)
	if errors.Is(err, streams.ErrNoMessage) {
		return frames.Mark{}, nil
	}
	if err != nil {
		return frames.Mark{}, err
	}
	from := first
	if frame, err := frames.Decode(last.Data); err == nil {
		mark, err := frames.DecodeMark(frame)
		if err == nil && mark.Parts == 1 && mark.AsOf+1 >= first {
			from = mark.AsOf + 1 // a newer one lies behind there
			if from == last.Seq {
				return mark, nil
			}
		}
	}
	var best frames.Mark
	for {
		mark, at, ok, err := s.from(ctx, from)
		if err != nil || !ok {
			return best, err
		}
		if mark.AsOf >= best.AsOf {
			best = mark
		}
		if from = at + 1; from > last.Seq {
			return best, nil
		}
	}
}

// since gives the first mark behind which nothing is gone of a stream that begins with a sequence.
func (s marks) since(ctx context.Context, first streams.Seq) (frames.Mark, bool, error) {
	for from := first; ; {
		mark, last, ok, err := s.from(ctx, from)
		if err != nil || !ok || mark.AsOf+1 >= first {
			return mark, ok, err
		}
		from = last + 1
	}
}
