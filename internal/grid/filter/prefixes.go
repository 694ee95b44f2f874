package filter

import (
	"maps"
	"slices"
	"strings"
)

// prefixes finds all of a set of texts that another text begins with.
//
// Sorted, all that begin a text stand before it or where it would, and whatever stands in
// between begins with them too. So they are on one chain: from the last that is not
// behind the text, each to the longest that begins it.
type prefixes struct {
	texts []string
	// shorter is the index of the longest other text that begins this one, -1 if none.
	shorter []int32
	ids     [][]int32
}

func newPrefixes(ids map[string][]int32) *prefixes {
	if len(ids) == 0 {
		return nil
	}
	p := &prefixes{texts: slices.Sorted(maps.Keys(ids))}
	for i, t := range p.texts {
		shorter := int32(i) - 1
		for shorter >= 0 && !strings.HasPrefix(t, p.texts[shorter]) {
			shorter = p.shorter[shorter]
		}
		p.shorter = append(p.shorter, shorter)
		p.ids = append(p.ids, ids[t])
	}
	return p
}

// last is the index of the last text that is not behind another in order, -1 if all are.
func (p *prefixes) last(of []byte) int32 {
	low, high := 0, len(p.texts)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if p.texts[middle] <= string(of) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return int32(low) - 1
}

// eachPrefix visits the filters of every text that another begins with.
func (m *Matcher) eachPrefix(p *prefixes, of []byte, o outcome) {
	at := p.last(of)
	for at >= 0 && !hasPrefix(of, p.texts[at]) {
		at = p.shorter[at]
	}
	for ; at >= 0; at = p.shorter[at] {
		m.visitAll(p.ids[at], o)
	}
}
