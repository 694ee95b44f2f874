package journal

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
)

// moves are changes of ownership that are being gathered, by group. Of a partition that moved several times
// since, the first owner and the last count.
type moves map[string]*gathered

type gathered struct {
	first      activity.Entry
	partitions map[string]moved
}

type moved struct {
	from, to string
	at       time.Time
}

// add takes in the moves of an entry.
func (m moves) add(e activity.Entry) {
	g := m[e.Object]
	if g == nil {
		g = &gathered{first: e, partitions: map[string]moved{}}
		m[e.Object] = g
	}
	for _, move := range e.Moves {
		for _, partition := range move.Partitions {
			now := moved{from: move.From, to: move.To, at: move.At}
			if before, known := g.partitions[partition]; known {
				now.from = before.from
			}
			g.partitions[partition] = now
		}
	}
}

// count is how many partitions there are.
func (m moves) count() (n int) {
	for _, g := range m {
		n += len(g.partitions)
	}
	return n
}

// take gives the moves of one group that were gathered for long enough, or of any.
func (m moves) take(now time.Time, any bool) (activity.Entry, bool) {
	for object, g := range m {
		if age := now.Sub(g.first.At); any || age >= gatherFor || age < 0 {
			delete(m, object)
			return g.entry(), true
		}
	}
	return activity.Entry{}, false
}

// entry is one entry of all that was gathered: by owner before and after.
func (g *gathered) entry() activity.Entry {
	e := g.first
	e.Moves, e.Detail, e.Count = nil, "", len(g.partitions)
	if e.Count > 1 {
		e.By = "" // several may have
	}
	byOwners := map[[2]string]*activity.Move{}
	for partition, p := range g.partitions {
		key := [2]string{p.from, p.to}
		move := byOwners[key]
		if move == nil {
			move = &activity.Move{At: p.at, From: p.from, To: p.to}
			byOwners[key] = move
		}
		move.Partitions = append(move.Partitions, partition)
		if p.at.Before(move.At) {
			move.At = p.at
		}
	}
	for _, move := range byOwners {
		slices.SortFunc(move.Partitions, byNumber)
		e.Moves = append(e.Moves, *move)
	}
	slices.SortFunc(e.Moves, func(a, b activity.Move) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	return e
}

func byNumber(a, b string) int {
	m, _ := strconv.Atoi(a)
	n, _ := strconv.Atoi(b)
	return cmp.Or(cmp.Compare(m, n), cmp.Compare(a, b))
}
