package retrylog

import (
	"cmp"
	"slices"
)

// spans are numbers that were claimed, as stretches: in order, and with gaps between them. As
// long as every batch that is stored is also claimed there is but one.
type spans []span

type span struct{ from, to int64 }

// claim adds a stretch, and tells whether it was free. One is claimed whole or not at all.
func (s *spans) claim(from, to int64) bool {
	all := *s
	i, _ := slices.BinarySearchFunc(all, from, func(x span, from int64) int { return cmp.Compare(x.from, from+1) })
	// all[i-1] is the last that begins at or before from.
	if from >= to || i > 0 && from < all[i-1].to || i < len(all) && to > all[i].from {
		return false
	}
	after := i > 0 && all[i-1].to == from
	before := i < len(all) && all[i].from == to
	switch {
	case after && before:
		all[i-1].to = all[i].to
		all = slices.Delete(all, i, i+1)
	case after:
		all[i-1].to = to
	case before:
		all[i].from = from
	default:
		all = slices.Insert(all, i, span{from, to})
	}
	*s = all
	return true
}
