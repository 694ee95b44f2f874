package logs

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit/history"
)

// history is that of a partition; the aged one loses what it would be compared with, and has one that
// nobody checks.
func (s *storm) history(number int) *history.Log {
	if number == aged {
		return &history.Log{}
	}
	return &s.histories[number]
}

// record records what was heard of an append.
func record(past *history.Log, begun history.Moment, what string, done eventlog.Appended, err error) {
	switch {
	case err == nil:
		past.Append(0, begun, what, int64(done.First))
	case errors.Is(err, eventlog.ErrUncertain) || !errors.Is(err, eventlog.ErrUnavailable): // which promises that it is not stored
		past.AppendUnheard(0, begun, what)
	}
}

// ask asks for the end of a partition now and then: all that was acknowledged to anybody is before it.
func (s *storm) ask(p *process, number int, pauses *rand.Rand) {
	part, past := p.partition(s.t, number), s.history(number)
	for part != nil {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Duration(pauses.IntN(3000)) * time.Millisecond):
		}
		begun := past.Now()
		if b, err := part.Sealed(s.t.Context()); err == nil {
			past.End(0, begun, int64(b.Next))
		}
	}
}
