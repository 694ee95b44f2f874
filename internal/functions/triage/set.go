package triage

import (
	"cmp"
	"math"
	"slices"
)

// Set is a set of sequence numbers, as ranges in order that neither overlap nor touch. The nil Set is empty.
// It is a value: no method changes the receiver or what it shares with others.
type Set []Range

// Range is the numbers from First to Last, both included.
type Range struct{ First, Last int64 }

// SetOf gives the set of numbers, which are best in order.
func SetOf(numbers ...int64) Set {
	if len(numbers) == 0 {
		return nil
	}
	if !slices.IsSorted(numbers) {
		numbers = slices.Sorted(slices.Values(numbers))
	}
	b := builder{set: make(Set, 0, runs(numbers))}
	for _, n := range numbers {
		b.add(n, n)
	}
	return b.set
}

// runs is how many ranges sorted numbers make, so that they are allocated at once.
func runs(sorted []int64) int {
	n := 1
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1] < sorted[i]-1 {
			n++
		}
	}
	return n
}

// Has tells whether n is in it.
func (s Set) Has(n int64) bool {
	i, found := slices.BinarySearchFunc(s, n, func(r Range, n int64) int { return cmp.Compare(r.First, n) })
	return found || i > 0 && n <= s[i-1].Last
}

// Add gives the set with n.
func (s Set) Add(n int64) Set { return s.Union(Set{{n, n}}) }

// Union gives what is in either.
func (s Set) Union(o Set) Set {
	b := builder{set: make(Set, 0, len(s)+len(o))}
	for len(s) > 0 || len(o) > 0 {
		if len(o) == 0 || len(s) > 0 && s[0].First <= o[0].First {
			b.add(s[0].First, s[0].Last)
			s = s[1:]
		} else {
			b.add(o[0].First, o[0].Last)
			o = o[1:]
		}
	}
	return b.done()
}

// Intersect gives what is in both.
func (s Set) Intersect(o Set) Set {
	var b builder
	for len(s) > 0 && len(o) > 0 {
		if first, last := max(s[0].First, o[0].First), min(s[0].Last, o[0].Last); first <= last {
			b.add(first, last)
		}
		if s[0].Last < o[0].Last {
			s = s[1:]
		} else {
			o = o[1:]
		}
	}
	return b.done()
}

// Minus gives what is not in o.
func (s Set) Minus(o Set) Set {
	var b builder
	for _, r := range s {
		for len(o) > 0 && o[0].Last < r.First {
			o = o[1:]
		}
		b.addWithout(r, o)
	}
	return b.done()
}

// Above gives those greater than n.
func (s Set) Above(n int64) Set {
	if n == math.MaxInt64 {
		return nil
	}
	return s.Intersect(Set{{n + 1, math.MaxInt64}})
}

// Len is how many there are, or the greatest number where that is less.
func (s Set) Len() int64 {
	var n int64
	for _, r := range s {
		size := r.Last - r.First // one less, which cannot overflow: numbers are not negative
		if n > math.MaxInt64-size-1 {
			return math.MaxInt64
		}
		n += size + 1
	}
	return n
}

// First is the least, -1 if it is empty.
func (s Set) First() int64 {
	if len(s) == 0 {
		return -1
	}
	return s[0].First
}

// Last is the greatest, -1 if it is empty.
func (s Set) Last() int64 {
	if len(s) == 0 {
		return -1
	}
	return s[len(s)-1].Last
}

// Equal tells whether both have the same numbers.
func (s Set) Equal(o Set) bool { return slices.Equal(s, o) }

// halves divides by count: the left one has the lower numbers, and one more where they cannot be equal.
func (s Set) halves() (left, right Set) {
	n := s.Len()
	left = s.least(n - n/2)
	return left, s.Minus(left)
}

// least gives the n lowest.
func (s Set) least(n int64) Set {
	var b builder
	for _, r := range s {
		if n <= 0 {
			break
		}
		last := r.Last
		if r.Last-r.First >= n {
			last = r.First + n - 1
		}
		b.add(r.First, last)
		n -= last - r.First + 1
	}
	return b.done()
}

// builder makes a set of ranges that come in the order of their first number.
type builder struct{ set Set }

func (b *builder) add(first, last int64) {
	if n := len(b.set); n > 0 && first-1 <= b.set[n-1].Last {
		b.set[n-1].Last = max(b.set[n-1].Last, last)
		return
	}
	b.set = append(b.set, Range{first, last})
}

// addWithout adds what of r is not in o, of which nothing ends before r.
func (b *builder) addWithout(r Range, o Set) {
	for _, gap := range o {
		if gap.First > r.Last {
			break
		}
		if r.First < gap.First {
			b.add(r.First, gap.First-1)
		}
		if gap.Last >= r.Last {
			return
		}
		r.First = gap.Last + 1
	}
	b.add(r.First, r.Last)
}

// done gives the set, nil if it is empty.
func (b *builder) done() Set {
	if len(b.set) == 0 {
		return nil
	}
	return b.set
}
