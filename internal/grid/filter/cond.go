package filter

// test is how a condition looks at one value.
type test byte

const (
	testPresent test = iota
	testBool
	testSpans
	testEqual
	testBegins
	testEnds
	testContains
	// These two keep the case. They are for subjects only, whose text has no escapes.
	testBeginsExactly
	testEndsExactly
)

// cond is a condition made ready: a test of the value in a slot.
type cond struct {
	slot int32
	test test
	// negative turns the test's answer round.
	negative bool
	// missing is the answer where there is no value.
	missing bool
	// arrays: the elements of an array are looked at.
	arrays bool
	// yes is what a boolean has to be.
	yes   bool
	spans []span
	texts []text
	// set has the texts where they are many, none longer than longest.
	set     map[string]struct{}
	longest int
}

// text is one that an event's is compared with.
type text struct {
	plain, folded string
	// edged is the folded text between edges, for looking whether another, or those of an
	// array, contain it. The sketch is without them.
	edged  []byte
	sketch sketch
}

func newText(plain string) text {
	folded := foldString(plain)
	edged := append(append([]byte{edge}, folded...), edge)
	return text{plain: plain, folded: folded, edged: edged, sketch: newSketch([]byte(folded))}
}

// part is the folded text.
func (t *text) part() []byte { return t.edged[1 : len(t.edged)-1] }

// between is what the texts of an array contain if one of them passes a test; nil if it is no
// test for arrays.
func (t *text) between(how test) []byte {
	switch how {
	case testEqual:
		return t.edged
	case testBegins:
		return t.edged[:len(t.edged)-1]
	case testEnds:
		return t.edged[1:]
	case testContains:
		return t.part()
	}
	return nil
}

// manyTexts is from where on a map is faster than looking at all.
const manyTexts = 8

// gather makes the set, where there are enough texts for one.
func (c *cond) gather() {
	if len(c.texts) <= manyTexts {
		return
	}
	c.set = make(map[string]struct{}, len(c.texts))
	for _, t := range c.texts {
		c.set[t.folded] = struct{}{}
		c.longest = max(c.longest, len(t.folded))
	}
}

func (s *scratch) holdAll(conds []cond) bool {
	for i := range conds {
		if !s.holds(&conds[i]) {
			return false
		}
	}
	return true
}

// holds says whether the event meets a condition.
func (s *scratch) holds(c *cond) bool {
	v := &s.values[c.slot]
	switch v.kind {
	case missing, null:
		return c.missing
	case array: // one element that passes the test decides, whichever way
		if c.test == testPresent {
			return !c.negative
		}
		return c.arrays && v.all().hit(c) != c.negative
	}
	hit, fits := c.try(v)
	return fits && hit != c.negative
}

// try does the test on one value. It does not fit if it is of another type.
func (c *cond) try(v *value) (hit, fits bool) {
	switch c.test {
	case testPresent:
		return true, true
	case testBool:
		return v.kind == boolean && v.isTrue() == c.yes, v.kind == boolean
	case testSpans:
		n, ok := v.asNumber()
		for i := 0; ok && i < len(c.spans); i++ {
			if c.spans[i].contains(n) {
				return true, true
			}
		}
		return false, ok
	}
	folded, ok := v.fold()
	if !ok {
		return false, false
	}
	if c.set != nil && c.test == testEqual {
		_, hit = c.set[string(folded[:min(len(folded), c.longest+1)])] // to hash more would be in vain
		return hit, true
	}
	for i := range c.texts {
		if c.texts[i].try(c.test, v, folded) {
			return true, true
		}
	}
	return false, true
}

func (t *text) try(how test, v *value, folded []byte) bool {
	switch how {
	case testEqual:
		return string(folded) == t.folded
	case testBegins:
		return hasPrefix(folded, t.folded)
	case testEnds:
		return hasSuffix(folded, t.folded)
	case testContains:
		return v.haystack.has(t.part(), t.sketch)
	case testBeginsExactly:
		return hasPrefix(v.text, t.plain)
	case testEndsExactly:
		return hasSuffix(v.text, t.plain)
	}
	return false
}
