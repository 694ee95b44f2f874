package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// stroll reads a log forward, past damage.
type stroll struct {
	log    eventlog.Partition
	cursor eventlog.Cursor // nil: it is to be opened at place
	target eventlog.Sequence
}

// stroll begins at a position. One beyond the end is the end.
func (b *box) stroll(ctx context.Context, at eventlog.Position) (*stroll, error) {
	cursor, err := b.log.Cursor(ctx, at)
	if ahead, ok := errors.AsType[*eventlog.PositionError](err); ok {
		cursor, err = b.log.Cursor(ctx, eventlog.At(ahead.Last+1))
	}
	if err != nil {
		return nil, err
	}
	return &stroll{log: b.log, cursor: cursor, target: cursor.At()}, nil
}

// next gives a run and moves past it; at the end one without events. What cannot be read for damage is
// a run whose messages are nil, and whose time is zero.
func (s *stroll) next(ctx context.Context) (run eventlog.Run, err error) {
	if s.cursor == nil {
		if s.cursor, err = s.log.Cursor(ctx, eventlog.At(s.target)); err != nil {
			return run, err
		}
	}
	run, err = s.cursor.TryNext(ctx)
	s.target = s.cursor.At()
	if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok && damage.Next > s.target {
		run = eventlog.Run{First: s.target, Events: make([]eventlog.Event, damage.Next-s.target)}
		s.moveTo(damage.Next)
		err = nil
	}
	return run, err
}

// moveTo goes on elsewhere, which is not beyond the end.
func (s *stroll) moveTo(target eventlog.Sequence) {
	s.close()
	s.target = target
}

func (s *stroll) close() {
	if s.cursor != nil {
		_ = s.cursor.Close()
		s.cursor = nil
	}
}

// walk gives each entry from a number on, with when it was put, until take has had enough. The message of
// one that cannot be read is nil. It returns where to go on, also after an error: what was given
// until then is good.
func (b *box) walk(ctx context.Context, from int64, take func(number int64, died time.Time, message []byte) bool) (int64, error) {
	s, err := b.stroll(ctx, eventlog.At(eventlog.Sequence(from)))
	if err != nil {
		return from, err
	}
	defer s.close()
	for {
		run, err := s.next(ctx)
		if err != nil || len(run.Events) == 0 {
			return int64(s.target), err
		}
		for i := range run.Events {
			if number := int64(run.First) + int64(i); !take(number, run.Time, run.Events[i].Message) {
				return number + 1, nil
			}
		}
	}
}

// readLetter reads an entry. Its event is valid as long as the message is.
func readLetter(number int64, died time.Time, message []byte) (Letter, error) {
	p, err := pending.Parse(message)
	return Letter{Number: number, Delivery: p, Died: died}, err
}
