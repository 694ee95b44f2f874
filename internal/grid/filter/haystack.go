package filter

import (
	"bytes"
	"index/suffixarray"
)

// longText is from where on it matters how often a text is searched, and manyLooks from which
// time on. Until then, searching costs about what it takes to make an index of it. They are
// changed by tests only.
var (
	longText  = 4 << 10
	manyLooks = 64
)

// haystack is a text in which others are looked for. How long it is an outsider chooses, how many
// are looked for thousands of subscriptions. So that the work is not the product of both, a
// long text that is searched often gets an index.
type haystack struct {
	text   []byte
	sketch sketch
	drawn  bool // sketch is there
	looks  int
	index  *suffixarray.Index
}

// has says whether part is in it. A part may have edges that its sketch knows nothing of.
func (h *haystack) has(part []byte, s sketch) bool {
	return h.sketched().mayContain(s) && h.search(part)
}

// search looks whether part is in it.
func (h *haystack) search(part []byte) bool {
	if len(h.text) < longText || len(part) == 0 {
		return bytes.Contains(h.text, part)
	}
	if h.looks++; h.looks > manyLooks && h.index == nil {
		h.index = suffixarray.New(h.text)
	}
	if h.index != nil {
		return len(h.index.Lookup(part, 1)) > 0
	}
	return bytes.Contains(h.text, part)
}

func (h *haystack) sketched() sketch {
	if !h.drawn {
		h.sketch, h.drawn = newSketch(h.text), true
	}
	return h.sketch
}

// sketch is which pairs of neighbouring bytes a text has, roughly. A text that has no
// pair of another's cannot contain it, and this shows it faster than looking.
type sketch uint64

func newSketch(text []byte) sketch {
	var s sketch
	for i := 1; i < len(text); i++ {
		s |= 1 << ((uint(text[i-1])*7 + uint(text[i])*13) & 63)
	}
	return s
}

// mayContain says false only if it is certain.
func (s sketch) mayContain(part sketch) bool { return part&^s == 0 }
