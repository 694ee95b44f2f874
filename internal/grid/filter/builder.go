package filter

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// builder makes an index: it counts how many filters share each value, chooses for each
// filter what the fewest share, and files it there.
type builder struct {
	index  *Index
	drafts []draft
	census []census
	files  []*files // by slot; nil where nothing is filed
}

// draft is a filter on its way into the index.
type draft struct {
	number int32
	// conds have the index's slots.
	conds []cond
}

func newBuilder(filters []*Filter) *builder {
	b := &builder{index: &Index{}, drafts: make([]draft, 0, len(filters))}
	var keys []key
	known := make(map[string]int32)
	for number, f := range filters {
		if f == nil {
			continue
		}
		d := draft{int32(number), slices.Clone(f.conds)}
		for i := range d.conds {
			k := f.keys[d.conds[i].slot]
			name := k.String()
			if _, ok := known[name]; !ok {
				known[name] = int32(len(keys))
				keys = append(keys, k)
			}
			d.conds[i].slot = known[name]
		}
		b.drafts = append(b.drafts, d)
	}
	b.index.layout = newLayout(keys)
	b.census = make([]census, len(keys))
	b.files = make([]*files, len(keys))
	return b
}

func (b *builder) count() {
	for _, d := range b.drafts {
		for i := range d.conds {
			b.census[d.conds[i].slot].add(&d.conds[i])
		}
	}
}

// choose puts the rarest condition of each filter first, and filters with the same one side
// by side.
func (b *builder) choose() {
	for _, d := range b.drafts {
		if len(d.conds) > 1 {
			rarest := b.rarest(d.conds)
			d.conds[0], d.conds[rarest] = d.conds[rarest], d.conds[0]
		}
	}
	slices.SortStableFunc(b.drafts, compareDrafts)
}

func (b *builder) rarest(conds []cond) int {
	rarest, least := 0, math.MaxInt
	for i := range conds {
		if cost := b.census[conds[i].slot].cost(&conds[i]); cost < least {
			rarest, least = i, cost
		}
	}
	return rarest
}

func compareDrafts(a, b draft) int {
	if len(a.conds) == 0 || len(b.conds) == 0 {
		return cmp.Compare(len(a.conds), len(b.conds))
	}
	x, y := &a.conds[0], &b.conds[0]
	if c := cmp.Or(cmp.Compare(x.slot, y.slot), cmp.Compare(x.test, y.test)); c != 0 {
		return c
	}
	if len(x.texts) > 0 && len(y.texts) > 0 {
		return strings.Compare(x.texts[0].folded, y.texts[0].folded)
	}
	if len(x.spans) > 0 && len(y.spans) > 0 {
		return x.spans[0].low.compare(y.spans[0].low)
	}
	return 0
}

// file gives the filters their ids, in order, and puts them into drawers.
func (b *builder) file() {
	b.index.plans = make([]plan, 0, len(b.drafts))
	b.index.conds = make([]cond, 0, len(b.drafts))
	for id, d := range b.drafts {
		first := int32(len(b.index.conds))
		p := plan{first: first, left: first, end: first + int32(len(d.conds)), number: d.number}
		if len(d.conds) == 0 {
			b.index.always = append(b.index.always, int32(id))
		} else {
			b.drawer(d.conds[0].slot).add(&d.conds[0], int32(id))
			if d.conds[0].settles() {
				p.left++
			}
		}
		b.index.plans = append(b.index.plans, p)
		b.index.conds = append(b.index.conds, d.conds...)
	}
}

func (b *builder) drawer(slot int32) *files {
	if b.files[slot] == nil {
		b.files[slot] = &files{}
	}
	return b.files[slot]
}

// finish closes the drawers.
func (b *builder) finish() *Index {
	b.index.drawers = make([]*drawer, len(b.files))
	for slot, f := range b.files {
		if f == nil {
			continue
		}
		b.index.drawers[slot] = f.close()
		if len(f.absent) > 0 {
			b.index.absent = append(b.index.absent, int32(slot))
		}
	}
	b.gatherSpans()
	return b.index
}

// gatherSpans puts the spans of all conditions side by side, so that to ask many filters in
// turn finds them in the processor's caches.
func (b *builder) gatherSpans() {
	all := make([]span, 0, len(b.index.conds))
	for i := range b.index.conds {
		all = append(all, b.index.conds[i].spans...)
	}
	for i := range b.index.conds {
		c := &b.index.conds[i]
		n := len(c.spans)
		c.spans, all = all[:n:n], all[n:]
	}
}
