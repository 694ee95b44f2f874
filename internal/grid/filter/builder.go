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

// newBuilder gives the keys of all filters slots, and counts what the filters ask for.
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
			c := &d.conds[i]
			k := f.keys[c.slot]
			name := k.String()
			if _, ok := known[name]; !ok {
				known[name] = int32(len(keys))
				keys, b.census = append(keys, k), append(b.census, census{})
			}
			c.slot = known[name]
			b.census[c.slot].add(c)
		}
		b.drafts = append(b.drafts, d)
	}
	b.index.layout = newLayout(keys)
	b.files = make([]*files, len(keys))
	return b
}

// choose puts the rarest condition of each filter first, and filters with the same one side
// by side.
func (b *builder) choose() {
	for _, d := range b.drafts {
		if len(d.conds) < 2 {
			continue
		}
		rarest, least := 0, math.MaxInt
		for i := range d.conds {
			if cost := b.census[d.conds[i].slot].cost(&d.conds[i]); cost < least {
				rarest, least = i, cost
			}
		}
		d.conds[0], d.conds[rarest] = d.conds[rarest], d.conds[0]
	}
	slices.SortStableFunc(b.drafts, compareDrafts)
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

// file gives the filters their ids, in order, puts them into drawers and closes these.
func (b *builder) file() *Index {
	x := b.index
	x.plans, x.conds = make([]plan, 0, len(b.drafts)), make([]cond, 0, len(b.drafts))
	for id, d := range b.drafts {
		first := int32(len(x.conds))
		p := plan{first: first, left: first, end: first + int32(len(d.conds)), number: d.number}
		if len(d.conds) == 0 {
			x.always = append(x.always, int32(id))
		} else {
			c := &d.conds[0]
			if b.files[c.slot] == nil {
				b.files[c.slot] = &files{}
			}
			b.files[c.slot].add(c, int32(id))
			if c.settles() {
				p.left++
			}
		}
		x.plans, x.conds = append(x.plans, p), append(x.conds, d.conds...)
	}
	x.drawers = make([]*drawer, len(b.files))
	for slot, f := range b.files {
		if f == nil {
			continue
		}
		x.drawers[slot] = f.close()
		if len(f.absent) > 0 {
			x.absent = append(x.absent, int32(slot))
		}
	}
	// The spans of all conditions lie side by side, so that to ask many filters in turn finds them
	// in the processor's caches.
	all := make([]span, 0, len(x.conds))
	for i := range x.conds {
		all = append(all, x.conds[i].spans...)
	}
	for i := range x.conds {
		c := &x.conds[i]
		n := len(c.spans)
		c.spans, all = all[:n:n], all[n:]
	}
	return x
}
