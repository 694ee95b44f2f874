package delivery

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// AttemptRecord is one request that was made.
type AttemptRecord struct {
	Time    time.Time `json:"time"`
	Events  int       `json:"events"`
	EventID string    `json:"eventId"` // of the first event
	// EventIDs are those of all events, in a batch; of a large one, the first maxNotedIDs.
	EventIDs []string      `json:"eventIds,omitempty"`
	Attempt  int           `json:"attempt"` // of the first event, from 1
	Outcome  retry.Outcome `json:"outcome"`
	Status   int           `json:"status,omitempty"`
	Took     time.Duration `json:"took"`
	Head     string        `json:"head,omitempty"`
	Err      string        `json:"error,omitempty"`
	// Probe: it was the one request that probation allows.
	Probe bool `json:"probe,omitempty"`
	// Next is when the first event is tried again; zero: not.
	Next time.Time `json:"next,omitzero"`

	// numbers are those of the events.
	numbers []numbered
}

// numbered are numbers of events of one partition.
type numbered struct {
	partition int
	set       ranges.Set
}

// maxNotedIDs bounds how many ids of a batch are remembered.
const maxNotedIDs = 100

// of reports whether it was a request with an event.
func (a *AttemptRecord) of(partition int, number int64) bool {
	return slices.ContainsFunc(a.numbers, func(n numbered) bool { return n.partition == partition && n.set.Has(number) })
}

// attempts is the newest of a lane, in a ring that is made when there is something to keep.
type attempts struct {
	ring []AttemptRecord
	next int
	full bool // some are forgotten
}

// How many requests are remembered of all lanes together, and of each at least: what is remembered would otherwise be
// most of what a yard with many subscriptions has in memory.
const (
	attemptsOfAll = 50_000
	fewestOfOne   = 3
)

// mostAttempts is how many are remembered of each lane now.
func (s *Service) mostAttempts() int {
	share := attemptsOfAll / max(int(s.laneCount.Load()), 1)
	return min(max(share, fewestOfOne), s.cfg.Attempts)
}

// add remembers one more, and of those before the newest.
func (a *attempts) add(r AttemptRecord, most int) {
	if len(a.ring) < most && a.next > 0 || len(a.ring) > most { // the bound is another than it was
		inOrder := slices.Concat(a.ring[a.next:], a.ring[:a.next])
		kept := min(len(inOrder), most)
		a.ring, a.next = slices.Clone(inOrder[len(inOrder)-kept:]), 0
		a.full = a.full || kept < len(inOrder)
	}
	if n := len(a.ring); n == most {
		a.ring[a.next], a.full = r, true
		a.next = (a.next + 1) % n
		return
	} else if n == cap(a.ring) {
		grown := make([]AttemptRecord, n, min(max(2*n, 1), most))
		copy(grown, a.ring)
		a.ring = grown
	}
	a.ring = append(a.ring, r)
}

// Attempts gives the newest first.
func (s *Service) Attempts(_ context.Context, subscription string) ([]AttemptRecord, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &l.attempts
	all := make([]AttemptRecord, 0, len(a.ring))
	for i := range a.ring {
		all = append(all, a.ring[(a.next+len(a.ring)-1-i)%len(a.ring)])
	}
	return all, nil
}

// recent is how long the newest took, as Stats has it.
func (a *attempts) recent() (took []int) {
	n := min(len(a.ring), maxRecent)
	for i := range n {
		r := &a.ring[(a.next+len(a.ring)-n+i)%len(a.ring)]
		ms := max(1, int(r.Took.Milliseconds()))
		if r.Outcome != retry.Delivered {
			ms = -ms
		}
		took = append(took, ms)
	}
	return took
}

// note remembers a request with some items.
func (b *batch) note(items []*item, r webhook.Result, probe bool, next time.Time) {
	first, attempt := items[0], items[0].Attempts
	if r.Outcome == retry.Delivered || r.Outcome == retry.PayloadTooLarge && len(items) > 1 {
		attempt++ // it was not counted there
	}
	record := AttemptRecord{
		Time: r.Began, Events: len(items), EventID: eventID(first), Attempt: attempt, Probe: probe,
		Outcome: r.Outcome, Status: r.Status, Took: r.Took, Head: string(r.Head), Err: r.Err, Next: next, numbers: numbersOf(items),
	}
	if len(items) > 1 {
		for _, it := range items[:min(len(items), maxNotedIDs)] {
			record.EventIDs = append(record.EventIDs, eventID(it))
		}
	}
	b.tally.attempts = append(b.tally.attempts, record)
	b.lane.s.metrics.took.Observe(r.Took.Seconds())
}

func numbersOf(items []*item) []numbered {
	if len(items) == 1 {
		return []numbered{{items[0].Partition, ranges.SetOf(items[0].Sequence)}}
	}
	byPartition := make(map[int][]int64, 1)
	for _, it := range items {
		byPartition[it.Partition] = append(byPartition[it.Partition], it.Sequence)
	}
	all := make([]numbered, 0, len(byPartition))
	for partition, numbers := range byPartition {
		all = append(all, numbered{partition, ranges.SetOf(numbers...)})
	}
	return all
}

// attemptOf is what an event keeps of a request that failed.
func attemptOf(r webhook.Result, probe bool) pending.Attempt {
	return pending.Attempt{At: r.Began, Took: r.Took, Outcome: r.Outcome, Status: r.Status, Said: cmp.Or(r.Err, string(r.Head)), Probe: probe}
}

// eventID reads the id that the publisher gave.
func eventID(it *item) string {
	var e schema.Envelope
	if err := e.Scan(it.Form, it.Event); err != nil {
		return ""
	}
	return string(e.ID)
}
