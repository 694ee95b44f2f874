package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
)

// Span is how long a partition had an owner.
type Span struct {
	Partition, Owner string
	From, To         time.Time
}

// History makes of changes of ownership who owned what, from one time to another: by partition, then by time.
// owners are those at the end, by partition; entries of other kinds are passed over. Where nothing is known of
// a partition's past, it had the owner that it has now.
func History(owners map[string]string, entries []activity.Entry, from, to time.Time) (spans []Span) {
	moved := movesOf(entries, from, to)
	for partition := range owners {
		if _, known := moved[partition]; !known {
			moved[partition] = nil
		}
	}
	for partition, moves := range moved {
		at, owner := from, owners[partition]
		if len(moves) > 0 {
			owner = moves[0].from
		}
		add := func(until time.Time) {
			if owner != "" && until.After(at) {
				spans = append(spans, Span{partition, owner, at, until})
			}
		}
		for _, m := range moves {
			add(m.at)
			at, owner = m.at, m.to
		}
		add(to)
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Or(byNumber(a.Partition, b.Partition), a.From.Compare(b.From)) })
	return spans
}

// movesOf gives the moves of each partition between two times, in their order.
func movesOf(entries []activity.Entry, from, to time.Time) map[string][]moved {
	all := map[string][]moved{}
	for _, e := range entries {
		for _, m := range e.Moves {
			if m.At.Before(from) || !m.At.Before(to) {
				continue
			}
			for _, partition := range m.Partitions {
				all[partition] = append(all[partition], moved{m.From, m.To, m.At})
			}
		}
	}
	for _, moves := range all {
		slices.SortStableFunc(moves, func(a, b moved) int { return a.at.Compare(b.at) })
	}
	return all
}
