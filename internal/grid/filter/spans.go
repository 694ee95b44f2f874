package filter

import (
	"cmp"
	"slices"
)

// spans finds all of a set of spans that a number is in, in a time that grows with how many
// these are, not with the set.
//
// It is an interval tree. The ends of all spans, sorted, are a binary tree: the middle one,
// then the middle ones of both halves, and so on. A span is kept at the first end on its way
// down that lies in it. A number goes the same way down; at each end it passes, it is in
// those spans there that begin before it (if it turns left), or end behind it (if it
// turns right), and so each end keeps its spans in both orders.
type spans struct {
	ends []bound
	kept []keptSpans
}

type keptSpans struct {
	byLow  []spanEnd // rising
	byHigh []spanEnd // falling
}

type spanEnd struct {
	end bound
	id  int32
}

type filedSpan struct {
	span
	id int32
}

func newSpans(all []filedSpan) *spans {
	if len(all) == 0 {
		return nil
	}
	ends := make([]bound, 0, 2*len(all)) // all that are numbers
	for _, s := range all {
		for _, end := range [...]bound{s.low, s.high} {
			if end.at != lowest && end.at != highest {
				ends = append(ends, end)
			}
		}
	}
	slices.SortFunc(ends, bound.compare)
	t := &spans{ends: slices.Compact(ends)}
	t.kept = make([]keptSpans, len(t.ends))
	for i := range all {
		kept := &t.kept[t.home(&all[i].span)]
		kept.byLow = append(kept.byLow, spanEnd{all[i].low, all[i].id})
		kept.byHigh = append(kept.byHigh, spanEnd{all[i].high, all[i].id})
	}
	for _, kept := range t.kept {
		slices.SortFunc(kept.byLow, func(a, b spanEnd) int { return a.end.compare(b.end) })
		slices.SortFunc(kept.byHigh, func(a, b spanEnd) int { return b.end.compare(a.end) })
	}
	return t
}

// home is the index of the end that keeps a span. There is one, because a span's own ends are
// among them.
func (t *spans) home(s *span) int {
	low, high := 0, len(t.ends)
	for {
		middle := int(uint(low+high) >> 1)
		switch end := t.ends[middle]; {
		case s.high.compare(end) < 0:
			high = middle
		case s.low.compare(end) > 0:
			low = middle + 1
		default:
			return middle
		}
	}
}

// eachSpan visits the filters of every span that a number is in.
func (m *Matcher) eachSpan(t *spans, n num, o outcome) {
	at := bound{at: n}
	for low, high := 0, len(t.ends); low < high; {
		middle := int(uint(low+high) >> 1)
		kept := &t.kept[middle]
		if at.compare(t.ends[middle]) < 0 {
			for i := 0; i < len(kept.byLow) && kept.byLow[i].end.compare(at) <= 0; i++ {
				m.visit(kept.byLow[i].id, o)
			}
			high = middle
			continue
		}
		for i := 0; i < len(kept.byHigh) && kept.byHigh[i].end.compare(at) >= 0; i++ {
			m.visit(kept.byHigh[i].id, o)
		}
		low = middle + 1
	}
}

// span is the numbers from low to high.
type span struct{ low, high bound }

// bound is a point next to a number, so that spans with and without their ends compare
// alike: side is -1 just before the number, 0 at it, 1 just behind it.
type bound struct {
	at   num
	side int8
}

func (b bound) compare(other bound) int {
	if c := b.at.compare(other.at); c != 0 {
		return c
	}
	return cmp.Compare(b.side, other.side)
}

func exactly(n num) span         { return between(n, n) }
func between(low, high num) span { return span{bound{at: low}, bound{at: high}} }
func below(n num) span           { return span{bound{at: lowest}, bound{n, -1}} }
func above(n num) span           { return span{bound{n, 1}, bound{at: highest}} }
func atMost(n num) span          { return span{bound{at: lowest}, bound{at: n}} }
func atLeast(n num) span         { return span{bound{at: n}, bound{at: highest}} }

func (s *span) contains(n num) bool {
	if c := n.compare(s.low.at); c < 0 || c == 0 && s.low.side > 0 {
		return false
	}
	c := n.compare(s.high.at)
	return c < 0 || c == 0 && s.high.side >= 0
}

// intersect gives what is in both spans: one, or none at all.
func intersect(a, b span) []span {
	both := a
	if b.low.compare(a.low) > 0 {
		both.low = b.low
	}
	if b.high.compare(a.high) < 0 {
		both.high = b.high
	}
	if both.high.compare(both.low) < 0 {
		return nil
	}
	return []span{both}
}
