package filter

// Index answers for many filters. It is immutable; a change makes a new one (10,000 filters
// in well under 100 ms).
//
// To ask every filter about every event would be too slow. So each filter is filed under one of its
// conditions, the one that the fewest others are likely to share: a text, a prefix, a span of
// numbers that a key's value must have. An event then meets, by its values, only the filters that
// are filed under them, and of these only the other conditions are left to be asked. Negative
// conditions are filed too: there, what an event meets is out, and all others are not.
type Index struct {
	layout *layout
	// plans are the filters, with those side by side that are filed alike, because they are
	// asked one after the other. A filter's index here is its id.
	plans []plan
	// conds are those of all filters in the order of plans.
	conds []cond
	// drawers has one for each slot; nil where nothing is filed.
	drawers []*drawer
	// absent are the slots whose drawers have filters that want no value.
	absent []int32
	// always are the ids of filters without conditions.
	always []int32
}

// plan is where a filter's conditions are, the one that it is filed under first.
type plan struct {
	first, end int32
	// left is from where on they have to be asked once the filter was found by the one that
	// it is filed under.
	left int32
	// number is what the filter is called outside.
	number int32
}

// drawer has the ids of the filters that are filed under one slot.
type drawer struct {
	// hits has those that match where they are found, misses those that do not.
	hits, misses pile
	// These are all that misses has, by what they compare.
	negativeTexts, negativeNumbers []int32
	// present and absent want some value, or none.
	present, absent []int32
	// arrays are those that look into arrays.
	arrays []int32
}

// pile has ids by the values of conditions.
type pile struct {
	equal    map[string][]int32
	begins   *prefixes
	ends     *prefixes // with all texts reversed
	contains []part
	spans    *spans
	bools    [2][]int32
}

// part is a text that another has to contain.
type part struct {
	text   []byte
	sketch sketch
	id     int32
}

// NewIndex makes an index; a filter's number is its index in the slice. A nil filter matches
// nothing.
func NewIndex(filters []*Filter) *Index {
	b := newBuilder(filters)
	b.choose()
	return b.file()
}

// Matcher is one goroutine's scratch space for an index.
type Matcher struct {
	index   *Index
	scratch scratch
	// spare is for the texts of arrays, one after the other.
	spare value
	// tried has a bit for each id, matched for each number.
	tried, matched []uint64
}

// Matcher makes one.
func (x *Index) Matcher() *Matcher {
	words := 1
	for _, p := range x.plans {
		words = max(words, int(p.number)/64+1)
	}
	return &Matcher{index: x, tried: make([]uint64, words), matched: make([]uint64, words)}
}
