package retrylog

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// maxFind bounds how many entries one Find looks at, in all logs together.
const maxFind = 50_000

// Found is an entry that is not done.
type Found struct {
	pending.Delivery
	// Parked: it is in the parked log. Wait is that of the retry log it is in otherwise.
	Parked bool
	Wait   time.Duration
	// Read: it was read already, and waits in memory or is in somebody's hands.
	Read bool
}

// Find gives the entries that a subscription has of the events that match, in its parked log and in
// all retry logs. It changes nothing. whole is false where not all could be looked at. match must
// not keep the delivery.
func (t *Logs) Find(ctx context.Context, subscription string, match func(*pending.Delivery) bool) (found []Found, whole bool, err error) {
	left := maxFind
	is := func(p *pending.Delivery) bool { return p.Subscription == subscription && match(p) }
	for _, r := range t.logs {
		if !r.mayHave(subscription) {
			continue
		}
		some, err := r.find(ctx, &left, is)
		if err != nil {
			return nil, false, fmt.Errorf("look for an event in %s: %w", r.id, err)
		}
		for _, f := range some {
			f.Wait = r.wait
			found = append(found, f)
		}
	}
	parked := t.Parked(subscription)
	some, err := parked.find(ctx, &left, is)
	if err != nil {
		return nil, false, fmt.Errorf("look for an event in %s: %w", parked.id, err)
	}
	for _, f := range some {
		f.Parked = true
		found = append(found, f)
	}
	return found, left > 0, nil
}

// mayHave says false only if the log has nothing of a subscription, as far as it was counted.
func (r *retryLog) mayHave(subscription string) bool {
	if !r.used.Load() {
		return false
	}
	r.opening.Lock()
	opened := r.part != nil
	r.opening.Unlock()
	r.mu.Lock()
	counted := opened && r.scanned >= r.scanEnd
	r.mu.Unlock()
	n, _ := r.t.counts.of(subscription, r.position)
	return !counted || n > 0
}

// find reads what is not done, with a cursor of its own.
func (q *queue) find(ctx context.Context, left *int, match func(*pending.Delivery) bool) (found []Found, err error) {
	if !q.used.Load() {
		return nil, nil
	}
	part, err := q.open(ctx)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	low := q.mark.Low()
	q.mu.Unlock()
	from := eventlog.NewReader(part.Cursor, eventlog.Sequence(low))
	defer from.Close()
	for *left > 0 {
		run, damage, err := from.Next(ctx)
		if damage != nil {
			continue // who reads it for good reports it
		}
		if err != nil || len(run.Events) == 0 {
			return found, err
		}
		*left -= len(run.Events)
		for i := range run.Events {
			p, err := pending.Parse(run.Events[i].Message)
			if err != nil || !match(&p) {
				continue
			}
			if open, read := q.isOpen(int64(run.First) + int64(i)); open {
				p.Event = append([]byte(nil), p.Event...)
				found = append(found, Found{Delivery: p, Read: read})
			}
		}
	}
	return found, nil
}

// isOpen tells whether an entry is not done, and whether it was read.
func (q *queue) isOpen(number int64) (open, read bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	read = number < q.mark.Next()
	return !read || q.mark.Has(number), read
}
