package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Bounds of a page: how many letters it has if nobody says, how large they may be all together, and
// how many are looked at for it.
const (
	defaultLimit = 100
	maxPageBytes = 8 << 20
	maxLooked    = 50_000
)

// List gives chosen letters, the oldest first. A page may have fewer than Limit, or none, and say
// where to go on all the same: where they are large, or far between.
func (s *Service) List(ctx context.Context, subscription string, q Query) (Page, error) {
	b, err := s.box(subscription)
	if err != nil || b == nil {
		return Page{}, err
	}
	q.Limit, q.MaxBytes = cmp.Or(q.Limit, defaultLimit), cmp.Or(q.MaxBytes, maxPageBytes)
	var page Page
	bytes := 0
	next, err := b.scan(ctx, q, maxLooked, func(l Letter) bool {
		page.Letters = append(page.Letters, l.kept())
		bytes += len(l.Event)
		return len(page.Letters) < q.Limit && bytes < q.MaxBytes
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
	page, err := s.List(ctx, subscription, Query{Numbers: []int64{number}})
	if err != nil {
		return Letter{}, fmt.Errorf("read dead letter %d: %w", number, err)
	}
	if len(page.Letters) == 0 {
		return Letter{}, fmt.Errorf("%w: %d: it was purged, is too old, or never was", ErrNotFound, number)
	}
	return page.Letters[0], nil
}

// kept gives a letter that outlives the cursor it came from.
func (l Letter) kept() Letter {
	l.Event = slices.Clone(l.Event)
	return l
}

// scan gives chosen letters, in order, until take has had enough, or, where most is not zero, so
// many were looked at. It returns where to go on; 0 when it came to the end. What cannot be read is
// left out.
func (b *box) scan(ctx context.Context, q Query, most int, take func(Letter) bool) (next int64, err error) {
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return 0, err
	}
	from, err := b.seek(ctx, q)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	end, marks, st, numbers, looked := int64(bounds.Next), b.book.Marks(), b.present().Value, ranges.SetOf(q.Numbers...), 0
	for {
		if at := int64(from.At()); len(numbers) > 0 {
			wanted := numbers.Next(at)
			if wanted < 0 || wanted >= end {
				return 0, nil
			}
			// To read a few that nobody wants is cheaper than to look for the next that is wanted.
			if wanted > at+100 {
				from.MoveTo(eventlog.Sequence(wanted))
			}
		}
		run, damage, err := from.Next(ctx)
		if damage != nil {
			continue
		}
		// Times never go backwards: what is behind a run that is too young is, too.
		if err != nil || len(run.Events) == 0 || !q.Until.IsZero() && !run.Time.Before(q.Until) {
			return 0, err
		}
		for i := range run.Events {
			number := int64(run.First) + int64(i)
			looked++
			enough := most > 0 && looked >= most
			if (len(numbers) == 0 || numbers.Has(number)) && !marks.Purged(number) {
				l, err := readLetter(number, run.Time, run.Events[i].Message)
				if redriven, ok := marks.Redriven(number, time.Time{}); ok {
					l.Redriven = time.UnixMilli(redriven.At).UTC()
				}
				l.Written = st.where(number)
				enough = err == nil && q.chooses(&l) && !take(l) || enough
			}
			switch {
			case !enough:
			case number+1 >= end, len(numbers) > 0 && number >= numbers.Last():
				return 0, nil
			default:
				return number + 1, nil
			}
		}
	}
}

// seek begins where the first letter may be that a query chooses.
func (b *box) seek(ctx context.Context, q Query) (*eventlog.Reader, error) {
	from := eventlog.NewReader(b.log.Cursor, eventlog.Sequence(q.From))
	if q.Since.IsZero() {
		return from, nil
	}
	if err := from.Seek(ctx, eventlog.Since(q.Since)); err != nil {
		return nil, err
	}
	from.MoveTo(max(from.At(), eventlog.Sequence(q.From)))
	return from, nil
}

func (q *Query) chooses(l *Letter) bool {
	switch {
	case q.Of != nil && *q.Of != Origin{l.Source, l.Partition, l.Sequence},
		!q.Redriven && !l.Redriven.IsZero() && len(q.Numbers) == 0,
		q.Reason != "" && !strings.EqualFold(q.Reason, l.Reason),
		q.Outcome != "" && !strings.EqualFold(q.Outcome, string(l.LastOutcome)),
		!q.Since.IsZero() && l.Died.Before(q.Since),
		!q.Until.IsZero() && !l.Died.Before(q.Until):
		return false
	case q.EventID == "" && q.EventType == "":
		return true
	}
	var e schema.Envelope
	if err := e.Scan(l.Form, l.Event); err != nil {
		return false
	}
	return (q.EventID == "" || q.EventID == string(e.ID)) && (q.EventType == "" || strings.EqualFold(q.EventType, string(e.Type)))
}

// walk gives each entry from a number on, with when it was put, until take has had enough. The
// message of one that cannot be read is nil, and its time zero. It returns where to go on, also
// after an error: what was given until then is good.
func (b *box) walk(ctx context.Context, first int64, take func(number int64, died time.Time, message []byte) bool) (int64, error) {
	from := eventlog.NewReader(b.log.Cursor, eventlog.Sequence(first))
	defer from.Close()
	for {
		run, damage, err := from.Next(ctx)
		if damage != nil {
			run = eventlog.Run{First: damage.First, Events: make([]eventlog.Event, damage.Next-damage.First)}
		}
		if err != nil || len(run.Events) == 0 {
			return int64(from.At()), err
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
