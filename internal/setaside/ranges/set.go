// Package ranges keeps sets of numbers as ranges of neighbours: sets of sequence numbers, and sets
// in which each number has a time. They are plain values without locks, and know no storage.
package ranges

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Set is a set of numbers, none negative, as ranges in order that neither overlap nor touch. The
// nil Set is empty. It is a value: no method changes what it shares with others.
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
	runs := 1 // how many ranges they make, so that these are allocated at once
	for i := 1; i < len(numbers); i++ {
		if numbers[i-1] < numbers[i]-1 {
			runs++
		}
	}
	s := make(Set, 0, runs)
	for _, n := range numbers {
		s.add(n, n)
	}
	return s
}

// Between gives the set of the numbers from first to last, both included.
func Between(first, last int64) Set { return Set{{first, last}} }

// at is the index of the first range that does not end before n.
func (s Set) at(n int64) int {
	i, _ := slices.BinarySearchFunc(s, n, func(r Range, n int64) int { return cmp.Compare(r.Last, n) })
	return i
}

// Has tells whether n is in it.
func (s Set) Has(n int64) bool { return s.Overlaps(Range{n, n}) }

// Overlaps tells whether any number of r is in it.
func (s Set) Overlaps(r Range) bool {
	i := s.at(r.First)
	return i < len(s) && s[i].First <= r.Last
}

// Next gives the least number that is not below n, -1 if there is none.
func (s Set) Next(n int64) int64 {
	if i := s.at(n); i < len(s) {
		return max(s[i].First, n)
	}
	return -1
}

// Add gives the set with n.
func (s Set) Add(n int64) Set { return s.Union(Set{{n, n}}) }

// All gives the numbers one by one, rising.
func (s Set) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, r := range s {
			for n := r.First; ; n++ {
				if !yield(n) {
					return
				}
				if n == r.Last { // the greatest number has none behind it
					break
				}
			}
		}
	}
}

// Claim adds a range of which nothing is in the set yet, and tells whether that was so: it is added
// whole or not at all.
func (s *Set) Claim(r Range) bool {
	if r.First > r.Last || s.Overlaps(r) {
		return false
	}
	*s = s.Union(Set{r})
	return true
}

// Union gives what is in either.
func (s Set) Union(o Set) Set {
	all := make(Set, 0, len(s)+len(o))
	for len(s) > 0 || len(o) > 0 {
		if len(o) == 0 || len(s) > 0 && s[0].First <= o[0].First {
			all.add(s[0].First, s[0].Last)
			s = s[1:]
		} else {
			all.add(o[0].First, o[0].Last)
			o = o[1:]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Intersect gives what is in both.
func (s Set) Intersect(o Set) (both Set) {
	for len(s) > 0 && len(o) > 0 {
		if first, last := max(s[0].First, o[0].First), min(s[0].Last, o[0].Last); first <= last {
			both.add(first, last)
		}
		if s[0].Last < o[0].Last {
			s = s[1:]
		} else {
			o = o[1:]
		}
	}
	return both
}

// Minus gives what is not in o.
func (s Set) Minus(o Set) (rest Set) {
	for _, r := range s {
		o = o[o.at(r.First):]
		r.minus(o, rest.add)
	}
	return rest
}

// minus gives, in order, the parts of r that are not in o, of which nothing ends before r.
func (r Range) minus(o Set, give func(first, last int64)) {
	for _, gap := range o {
		if gap.First > r.Last {
			break
		}
		if r.First < gap.First {
			give(r.First, gap.First-1)
		}
		if gap.Last >= r.Last {
			return
		}
		r.First = gap.Last + 1
	}
	give(r.First, r.Last)
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

// Halves divides by count: the left one has the lower numbers, and one more where they cannot be
// equal.
func (s Set) Halves() (left, right Set) {
	n := s.Len()
	n -= n / 2
	for _, r := range s {
		if n <= 0 {
			break
		}
		if r.Last-r.First >= n {
			r.Last = r.First + n - 1
		}
		left.add(r.First, r.Last)
		n -= r.Last - r.First + 1
	}
	return left, s.Minus(left)
}

// Valid tells whether it is as sets are: not negative, rising, apart. One that was decoded from
// something else than its text may not be.
func (s Set) Valid() bool {
	for i, r := range s {
		if r.First < 0 || r.Last < r.First || i > 0 && r.First-1 <= s[i-1].Last {
			return false
		}
	}
	return true
}

// add adds a range that begins at or behind the last range's beginning. The caller alone has s.
func (s *Set) add(first, last int64) {
	if n := len(*s); n > 0 && first-1 <= (*s)[n-1].Last {
		(*s)[n-1].Last = max((*s)[n-1].Last, last)
		return
	}
	*s = append(*s, Range{first, last})
}
