package filter

import "slices"

// bucket is what a condition is filed by.
type bucket byte

const (
	inSpans bucket = iota
	inBools
	inEqual
	inBegins
	inEnds
	inContains
	inPresent
	inAbsent
)

// manyValues is from where on a condition is not worth an entry for each of its texts.
const manyValues = 256

// bucket is where a condition is filed, negative ones among the misses.
func (c *cond) bucket() bucket {
	switch c.test {
	case testSpans:
		return inSpans
	case testBool:
		return inBools
	case testBegins, testBeginsExactly:
		return inBegins
	case testEnds, testEndsExactly:
		return inEnds
	case testContains:
		return inContains
	case testEqual:
		if c.negative || len(c.texts) <= manyValues {
			return inEqual
		}
	}
	if c.negative {
		return inAbsent
	}
	return inPresent
}

// settles says whether whoever is found where the condition is filed meets it. The buckets
// of texts ignore case, and that of presence anything but presence.
func (c *cond) settles() bool {
	exactly := c.test == testBeginsExactly || c.test == testEndsExactly
	return !exactly && (c.bucket() != inPresent || c.test == testPresent)
}

// files is a drawer while it is filled.
type files struct {
	drawer
	hits, misses pileFiles
}

type pileFiles struct {
	pile
	begins, ends map[string][]int32
	spans        []filedSpan
}

// add files a filter under one of its conditions.
func (f *files) add(c *cond, id int32) {
	if c.arrays {
		f.arrays = append(f.arrays, id)
	}
	if c.missing {
		f.absent = append(f.absent, id)
	}
	switch c.bucket() {
	case inPresent:
		f.present = append(f.present, id)
		return
	case inAbsent:
		return
	}
	if !c.negative {
		f.hits.add(c, id)
		return
	}
	f.misses.add(c, id)
	if c.test == testSpans {
		f.negativeNumbers = append(f.negativeNumbers, id)
	} else {
		f.negativeTexts = append(f.negativeTexts, id)
	}
}

func (p *pileFiles) add(c *cond, id int32) {
	switch c.bucket() {
	case inSpans:
		for _, s := range c.spans {
			p.spans = append(p.spans, filedSpan{s, id})
		}
	case inBools:
		p.bools[boolBucket(c.yes)] = append(p.bools[boolBucket(c.yes)], id)
	case inContains:
		for _, t := range c.texts {
			p.contains = append(p.contains, part{t.part(), t.sketch, id})
		}
	case inEqual:
		addTexts(&p.equal, c.texts, id, false)
	case inBegins:
		addTexts(&p.begins, c.texts, id, false)
	case inEnds:
		addTexts(&p.ends, c.texts, id, true)
	}
}

func addTexts(to *map[string][]int32, texts []text, id int32, reversed bool) {
	if *to == nil {
		*to = make(map[string][]int32)
	}
	for _, t := range texts {
		folded := t.folded
		if reversed {
			bytes := []byte(folded)
			slices.Reverse(bytes)
			folded = string(bytes)
		}
		(*to)[folded] = append((*to)[folded], id)
	}
}

// boolBucket is where true and false are filed.
func boolBucket(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// close makes the drawer.
func (f *files) close() *drawer {
	d := f.drawer
	d.hits, d.misses = f.hits.close(), f.misses.close()
	return &d
}

func (p *pileFiles) close() pile {
	p.pile.begins, p.pile.ends, p.pile.spans = newPrefixes(p.begins), newPrefixes(p.ends), newSpans(p.spans)
	return p.pile
}
