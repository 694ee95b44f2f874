package filter

import "slices"

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
	t := &spans{ends: sortedEnds(all)}
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

// sortedEnds are all ends that are numbers.
func sortedEnds(all []filedSpan) []bound {
	ends := make([]bound, 0, 2*len(all))
	for _, s := range all {
		for _, end := range [...]bound{s.low, s.high} {
			if end.at != lowest && end.at != highest {
				ends = append(ends, end)
			}
		}
	}
	slices.SortFunc(ends, bound.compare)
	return slices.Compact(ends)
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
