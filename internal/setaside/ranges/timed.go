package ranges

import (
	"cmp"
	"slices"
)

// Timed is a set of numbers of which each has a time. Spans are in order and do not overlap;
// neighbours of one time are one span. Like Set it is a value.
type Timed []Span

// Span is the numbers from First to Last, both included, and their time in Unix milliseconds.
type Span struct {
	Range
	At int64
}

// Find gives the span that n is in.
func (t Timed) Find(n int64) (Span, bool) {
	i, _ := slices.BinarySearchFunc(t, n, func(s Span, n int64) int { return cmp.Compare(s.Last, n) })
	if i == len(t) || t[i].First > n {
		return Span{}, false
	}
	return t[i], true
}

// With gives the set with numbers at a time, whatever the time was that they had.
func (t Timed) With(numbers Set, at int64) Timed {
	all := t.Without(numbers)
	for _, r := range numbers {
		all = append(all, Span{r, at})
	}
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	joined := all[:0]
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && joined[last].Last == s.First-1 && joined[last].At == s.At {
			joined[last].Last = s.Last
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// Without gives the set without numbers.
func (t Timed) Without(numbers Set) Timed {
	rest := make(Timed, 0, len(t)+len(numbers))
	for _, s := range t {
		numbers = numbers[numbers.at(s.First):]
		s.minus(numbers, func(first, last int64) { rest = append(rest, Span{Range{first, last}, s.At}) })
	}
	return rest
}

// Below gives those less than n.
func (t Timed) Below(n int64) (rest Timed) {
	for _, s := range t {
		if s.Last = min(s.Last, n-1); s.First <= s.Last {
			rest = append(rest, s)
		}
	}
	return rest
}

// Within is how many of the numbers of r it has.
func (t Timed) Within(r Range) (n int64) {
	for _, s := range t {
		n += max(0, min(s.Last, r.Last)-max(s.First, r.First)+1)
	}
	return n
}

// Last is the greatest number, -1 if it is empty.
func (t Timed) Last() int64 {
	if len(t) == 0 {
		return -1
	}
	return t[len(t)-1].Last
}
