package filter

import (
	"math/bits"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// outcome is what it means for a filter to be found.
type outcome byte

const (
	// settled: the condition that it is filed under holds, and the others are left.
	settled outcome = iota
	// inArray: so it is if it looks into arrays; else it is out.
	inArray
	// failed: it is out.
	failed
)

// Match appends the numbers of all filters that the event passes, rising, to matched.
func (m *Matcher) Match(e *schema.Envelope, matched []int) []int {
	m.scratch.load(m.index.layout, e)
	for _, slot := range m.scratch.filled {
		if d := m.index.drawers[slot]; d != nil {
			m.open(d, &m.scratch.values[slot])
		}
	}
	for _, slot := range m.index.absent {
		if m.scratch.values[slot].kind <= null {
			m.visitAll(m.index.drawers[slot].absent, settled)
		}
	}
	m.visitAll(m.index.always, settled)
	m.scratch.release()
	m.spare.reset()
	return m.collect(matched)
}

// open visits the filters that are filed under a value.
func (m *Matcher) open(d *drawer, v *value) {
	switch v.kind {
	case null:
		return
	case array:
		m.openArray(d, v)
	default:
		m.find(&d.misses, v, failed)
		if _, ok := v.asNumber(); ok {
			m.visitAll(d.negativeNumbers, settled)
		}
		if v.isText() {
			m.visitAll(d.negativeTexts, settled)
		}
		m.find(&d.hits, v, settled)
	}
	m.visitAll(d.present, settled)
}

func (m *Matcher) openArray(d *drawer, v *value) {
	if len(d.arrays) == 0 {
		return
	}
	all := v.all()
	if all.count > fewElements { // ask the filters for the condition that they are filed under, too
		for _, id := range d.arrays {
			o := failed
			if m.scratch.holds(&m.index.conds[m.index.plans[id].first]) {
				o = settled
			}
			m.visit(id, o)
		}
		return
	}
	m.findAny(&d.misses, all, failed)
	m.findAny(&d.hits, all, inArray)
	m.visitAll(d.negativeNumbers, inArray)
	m.visitAll(d.negativeTexts, inArray)
}

// findAny visits the filters whose condition is about one of some elements.
func (m *Matcher) findAny(p *pile, all *elements, o outcome) {
	for bucket, there := range all.bools {
		if there {
			m.visitAll(p.bools[bucket], o)
		}
	}
	if p.spans != nil {
		for _, n := range all.numbers {
			m.eachSpan(p.spans, n, o)
		}
	}
	if !p.hasTexts() || len(all.texts.text) == 0 {
		return
	}
	for text := range all.eachText {
		m.spare.reset()
		m.spare.folded = text
		m.findText(p, &m.spare, o)
	}
	m.eachPart(p.contains, &all.texts, o)
}

// find visits the filters whose condition is about a single value like this one.
func (m *Matcher) find(p *pile, v *value, o outcome) {
	switch v.kind {
	case boolean:
		m.visitAll(p.bools[boolBucket(v.isTrue())], o)
	case number:
		if n, ok := v.asNumber(); ok && p.spans != nil {
			m.eachSpan(p.spans, n, o)
		}
	}
	if p.hasTexts() {
		if _, ok := v.fold(); ok {
			m.findText(p, v, o)
			m.eachPart(p.contains, &v.haystack, o)
		}
	}
}

func (p *pile) hasTexts() bool {
	return p.equal != nil || p.begins != nil || p.ends != nil || p.contains != nil
}

// findText visits the filters that want a text to be, or begin or end with, another.
func (m *Matcher) findText(p *pile, v *value, o outcome) {
	if p.equal != nil {
		m.visitAll(p.equal[string(v.folded)], o)
	}
	if p.begins != nil {
		m.eachPrefix(p.begins, v.folded, o)
	}
	if p.ends != nil {
		m.eachPrefix(p.ends, v.reverse(), o)
	}
}

// eachPart visits the filters that want a text to contain another.
func (m *Matcher) eachPart(parts []part, in *haystack, o outcome) {
	if len(parts) == 0 {
		return
	}
	of := in.sketched()
	for i := range parts {
		if p := &parts[i]; of.mayContain(p.sketch) && in.search(p.text) {
			m.visit(p.id, o)
		}
	}
}

func (m *Matcher) visitAll(ids []int32, o outcome) {
	for _, id := range ids {
		m.visit(id, o)
	}
}

// visit sees to a filter that was found, the first time in each event.
func (m *Matcher) visit(id int32, o outcome) {
	word, bit := id>>6, uint64(1)<<(id&63)
	if m.tried[word]&bit != 0 {
		return
	}
	m.tried[word] |= bit
	if o == failed {
		return
	}
	p := &m.index.plans[id]
	if o == inArray && !m.index.conds[p.first].arrays {
		return
	}
	if m.scratch.holdAll(m.index.conds[p.left:p.end]) {
		m.matched[p.number>>6] |= 1 << (p.number & 63)
	}
}

// collect gives the numbers of what matched, and makes the bits ready for the next event.
func (m *Matcher) collect(matched []int) []int {
	for word, set := range m.matched {
		for ; set != 0; set &= set - 1 {
			matched = append(matched, word<<6+bits.TrailingZeros64(set))
		}
	}
	clear(m.matched)
	clear(m.tried)
	return matched
}
