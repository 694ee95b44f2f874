package journal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Recorded is an entry with its number in the log.
type Recorded struct {
	Number eventlog.Sequence
	activity.Entry
}

// Query chooses entries. Its zero value chooses all.
type Query struct {
	// Kinds are kinds, or families of them; none: all.
	Kinds []string
	// Object is one, with all that is in it; By is who did it.
	Object, By string
	// Since and Until bound the time, if they are set.
	Since, Until time.Time
	// Before is the number that all are below; 0: there is no such bound.
	Before eventlog.Sequence
	// Limit is how many are given at most; 0 means 100.
	Limit int
}

// Chooses tells whether an entry is one of those asked for, by all but its number.
func (q Query) Chooses(e activity.Entry) bool {
	kind := func(k string) bool { return k == string(e.Kind) || k == e.Kind.Family() }
	return (len(q.Kinds) == 0 || slices.ContainsFunc(q.Kinds, kind)) &&
		(q.Object == "" || isIn(e.Object, q.Object)) &&
		(q.By == "" || strings.EqualFold(e.By, q.By)) &&
		(q.Since.IsZero() || !e.At.Before(q.Since)) && (q.Until.IsZero() || e.At.Before(q.Until))
}

// isIn tells whether an object is another, or in it. Names of hubs, topics and policies are told apart
// without case.
func isIn(object, other string) bool {
	object, other = strings.ToLower(object), strings.ToLower(other)
	rest, ok := strings.CutPrefix(object, other)
	return ok && (rest == "" || rest[0] == '/')
}

// Bounds of one page.
const (
	defaultLimit = 100
	// maxLooked is how many entries are looked at for a page, and block how many are read at a time.
	maxLooked = 20_000
	block     = 512
	// slack is how much earlier than it was stored an entry may say that it happened: it may have waited
	// in the queue, and the clocks of nodes differ.
	slack = time.Hour
)

// Page gives entries, the newest first, and where to go on: the Before of the next page; 0: there is
// nothing more. It may have fewer than asked for, or none, and go on all the same: it looks at so many at
// most.
func (j *Journal) Page(ctx context.Context, q Query) (found []Recorded, next eventlog.Sequence, err error) {
	bounds, err := j.bounds(ctx)
	if err != nil {
		return nil, 0, err
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	end := bounds.Next
	if q.Before > 0 {
		end = min(end, q.Before)
	}
	reader := eventlog.NewReader(j.partition.Cursor, 0)
	defer reader.Close()
	for looked := 0; end > bounds.First && looked < maxLooked; looked += block {
		from := max(end-block, bounds.First)
		read, err := readBetween(ctx, reader, from, end)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range slices.Backward(read) {
			if !q.Since.IsZero() && r.At.Before(q.Since.Add(-slack)) {
				return found, 0, nil
			}
			if !q.Chooses(r.Entry) {
				continue
			}
			if found = append(found, r); len(found) == q.Limit {
				return found, moreBelow(r.Number, bounds.First), nil
			}
		}
		end = from
	}
	return found, moreBelow(end, bounds.First), nil
}

// moreBelow is where to go on below a number.
func moreBelow(number, first eventlog.Sequence) eventlog.Sequence {
	if number <= first {
		return 0
	}
	return number
}

// bounds are those of the log. One that was not provided yet has nothing.
func (j *Journal) bounds(ctx context.Context) (eventlog.Bounds, error) {
	if err := j.cfg.Engine.Provide(ctx, LogName, Shape); err != nil {
		return eventlog.Bounds{}, err
	}
	return j.partition.Bounds(ctx)
}

// readBetween reads entries from a number to before another. What is damaged is left out.
func readBetween(ctx context.Context, reader *eventlog.Reader, from, end eventlog.Sequence) (read []Recorded, err error) {
	reader.MoveTo(from)
	for reader.At() < end {
		run, damage, err := reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		if run.Len() == 0 && damage == nil {
			break
		}
		for _, r := range decode(run) {
			if r.Number >= from && r.Number < end {
				read = append(read, r)
			}
		}
	}
	return read, nil
}

// decode reads the entries of a run. What cannot be read was written by a later version, and is left out.
func decode(run eventlog.Run) (read []Recorded) {
	for i, e := range run.Events {
		r := Recorded{Number: run.First + eventlog.Sequence(i)}
		if json.Unmarshal(e.Message, &r.Entry) == nil {
			read = append(read, r)
		}
	}
	return read
}

// Tail follows the journal. One goroutine uses it.
type Tail struct {
	journal *Journal
	cursor  eventlog.Cursor
	query   Query
}

// Follow gives a tail of what a query chooses, behind the entry of a number; below zero: of what comes from
// now on.
func (j *Journal) Follow(ctx context.Context, q Query, after eventlog.Sequence) (*Tail, error) {
	if _, err := j.bounds(ctx); err != nil {
		return nil, err
	}
	t := &Tail{journal: j, query: q}
	at := eventlog.Latest()
	if after >= 0 {
		at = eventlog.After(after)
	}
	return t, t.open(ctx, at)
}

func (t *Tail) open(ctx context.Context, at eventlog.Position) error {
	cursor, err := t.journal.partition.Cursor(ctx, at)
	if ahead, ok := errors.AsType[*eventlog.PositionError](err); ok { // a number of a journal that was lost
		cursor, err = t.journal.partition.Cursor(ctx, eventlog.At(ahead.Last+1))
	}
	if err == nil {
		t.cursor = eventlog.EventsOnly(cursor)
	}
	return err
}

// At is the number that comes next.
func (t *Tail) At() eventlog.Sequence { return t.cursor.At() }

// Next waits for entries and gives those that are chosen, perhaps none. Errors are those of a cursor; it
// goes on behind damage.
func (t *Tail) Next(ctx context.Context) (found []Recorded, err error) {
	run, err := t.cursor.Next(ctx)
	if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok && damage.Next > t.cursor.At() {
		_ = t.cursor.Close()
		return nil, t.open(ctx, eventlog.At(damage.Next))
	}
	if err != nil {
		return nil, err
	}
	for _, r := range decode(run) {
		if t.query.Chooses(r.Entry) {
			found = append(found, r)
		}
	}
	return found, nil
}

// Close frees the tail.
func (t *Tail) Close() { _ = t.cursor.Close() }
