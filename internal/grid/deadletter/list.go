package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Bounds of a page: how many letters it has if nobody says, how large they may be all together, and how
// many are looked at for it.
const (
	defaultLimit = 100
	maxPageBytes = 8 << 20
	maxLooked    = 50_000
)

// List gives chosen letters, the oldest first. A page may have fewer than Limit, or none, and say
// where to go on all the same: where they are large, or far between.
func (s *Service) List(ctx context.Context, subscription string, q Query) (Page, error) {
	b := s.box(subscription)
	if b == nil {
		return Page{}, nil
	}
	q.Limit = cmp.Or(q.Limit, defaultLimit)
	var page Page
	bytes := 0
	next, err := b.scan(ctx, q, maxLooked, func(l Letter) bool {
		page.Letters = append(page.Letters, l.kept())
		bytes += len(l.Event)
		return len(page.Letters) < q.Limit && bytes < maxPageBytes
	})
	if err != nil {
		return Page{}, fmt.Errorf("list dead letters: %w", err)
	}
	page.Next = next
	counts, err := s.Counts(ctx, subscription)
	page.Total = counts.Kept
	return page, err
}

// Get gives one.
func (s *Service) Get(ctx context.Context, subscription string, number int64) (Letter, error) {
	b := s.box(subscription)
	var found *Letter
	if b != nil {
		_, err := b.scan(ctx, Query{Numbers: []int64{number}}, 0, func(l Letter) bool {
			l = l.kept()
			found = &l
			return false
		})
		if err != nil {
			return Letter{}, fmt.Errorf("read dead letter %d: %w", number, err)
		}
	}
	if found == nil {
		return Letter{}, fmt.Errorf("%w: %d: it was purged, is too old, or never was", ErrNotFound, number)
	}
	return *found, nil
}

// kept gives a letter that outlives the cursor it came from.
func (l Letter) kept() Letter {
	l.Event = slices.Clone(l.Event)
	return l
}

// search is one look through the letters.
type search struct {
	Query // its numbers are rising, and those that were passed are taken out
	marks marks
	state state
	// byNumber tells that only some numbers are wanted.
	byNumber bool
	end      int64 // of the log when it began
	looked   int
	most     int
}

// scan gives chosen letters, in order, until take has had enough, or, where most is not zero, so many were
// looked at. It returns where to go on; 0 when it came to the end.
func (b *box) scan(ctx context.Context, q Query, most int, take func(Letter) bool) (next int64, err error) {
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return 0, err
	}
	s := search{Query: q, marks: b.marked(), state: b.present(), byNumber: len(q.Numbers) > 0, end: int64(bounds.Next), most: most}
	s.Numbers = slices.Compact(slices.Sorted(slices.Values(q.Numbers)))
	way, err := b.begin(ctx, q)
	if err != nil {
		return 0, err
	}
	defer way.close()
	for s.goOn(way) {
		run, err := way.next(ctx)
		if err != nil {
			return 0, err
		}
		if len(run.Events) == 0 || s.past(run) {
			return 0, nil
		}
		if last, enough := s.give(run, take); enough {
			return s.after(last), nil
		}
	}
	return 0, nil
}

// begin is where the first letter may be that a query chooses.
func (b *box) begin(ctx context.Context, q Query) (*stroll, error) {
	at := eventlog.At(eventlog.Sequence(q.From))
	if q.Since.IsZero() {
		return b.stroll(ctx, at)
	}
	way, err := b.stroll(ctx, eventlog.Since(q.Since))
	if err == nil && int64(way.target) < q.From {
		way.close()
		return b.stroll(ctx, at)
	}
	return way, err
}

// goOn moves to the next letter that can be chosen. It gives false if there is none.
func (s *search) goOn(way *stroll) bool {
	if !s.byNumber {
		return true
	}
	i, _ := slices.BinarySearch(s.Numbers, int64(way.target))
	s.Numbers = s.Numbers[i:]
	if len(s.Numbers) == 0 || s.Numbers[0] >= s.end {
		return false
	}
	// To read a few that nobody wants is cheaper than to look for the next that is wanted.
	const few = 100
	if s.Numbers[0] > int64(way.target)+few {
		way.moveTo(eventlog.Sequence(s.Numbers[0]))
	}
	return true
}

// past tells whether a run, and all behind it, is too young: times never go backwards.
func (s *search) past(run eventlog.Run) bool {
	return !s.Until.IsZero() && !run.Time.Before(s.Until)
}

// give gives the chosen letters of a run. It tells which was the last that it looked at if that is
// enough.
func (s *search) give(run eventlog.Run, take func(Letter) bool) (last int64, enough bool) {
	for i := range run.Events {
		number := int64(run.First) + int64(i)
		s.looked++
		if s.wants(number) {
			l, err := readLetter(number, run.Time, run.Events[i].Message)
			l.Redriven, l.Written = s.marks.redriven(number), s.state.where(number)
			if err == nil && s.chooses(&l) && !take(l) {
				return number, true
			}
		}
		if s.most > 0 && s.looked >= s.most {
			return number, true
		}
	}
	return 0, false
}

// after is where to go on behind a letter; 0 where nothing more can be chosen.
func (s *search) after(number int64) int64 {
	if number+1 >= s.end || s.byNumber && number >= s.Numbers[len(s.Numbers)-1] {
		return 0
	}
	return number + 1
}

// wants tells whether a letter is worth being read.
func (s *search) wants(number int64) bool {
	if s.byNumber {
		if _, wanted := slices.BinarySearch(s.Numbers, number); !wanted {
			return false
		}
	}
	return !s.marks.purged(number)
}

func (s *search) chooses(l *Letter) bool {
	switch {
	case !s.Redriven && !l.Redriven.IsZero() && !s.byNumber,
		s.Reason != "" && !strings.EqualFold(s.Reason, l.Reason),
		s.Outcome != "" && !strings.EqualFold(s.Outcome, string(l.LastOutcome)),
		!s.Since.IsZero() && l.Died.Before(s.Since),
		!s.Until.IsZero() && !l.Died.Before(s.Until):
		return false
	}
	return s.choosesEvent(l)
}

func (q *Query) choosesEvent(l *Letter) bool {
	if q.EventID == "" && q.EventType == "" {
		return true
	}
	var e schema.Envelope
	if err := e.Scan(l.Form, l.Event); err != nil {
		return false
	}
	return (q.EventID == "" || q.EventID == string(e.ID)) && (q.EventType == "" || strings.EqualFold(q.EventType, string(e.Type)))
}
