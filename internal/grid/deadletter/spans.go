package deadletter

import "slices"

// span is a stretch of letters, and when something was done to them, in Unix milliseconds.
type span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // not included
	At   int64 `json:"at,omitempty"`
}

// spans are in order and do not overlap. They are never changed, only replaced.
type spans []span

// find gives the span that a letter is in.
func (s spans) find(n int64) (span, bool) {
	i, found := slices.BinarySearchFunc(s, n, func(x span, n int64) int {
		switch {
		case x.To <= n:
			return -1
		case x.From > n:
			return 1
		}
		return 0
	})
	if !found {
		return span{}, false
	}
	return s[i], true
}

// within counts the letters from first up to next.
func (s spans) within(first, next int64) (n int64) {
	for _, x := range s {
		if from, to := max(x.From, first), min(x.To, next); from < to {
			n += to - from
		}
	}
	return n
}

// with adds letters, of which numbers has each, rising.
func (s spans) with(numbers []int64, at int64) spans {
	if len(numbers) == 0 {
		return s
	}
	all := s.without(numbers)
	for _, n := range numbers {
		if last := len(all) - 1; last >= 0 && all[last].To == n && all[last].At == at {
			all[last].To++
			continue
		}
		all = append(all, span{From: n, To: n + 1, At: at})
	}
	slices.SortFunc(all, func(a, b span) int { return int(min(1, max(-1, a.From-b.From))) })
	return all.joined()
}

// without takes letters out.
func (s spans) without(numbers []int64) spans {
	rest := make(spans, 0, len(s)+len(numbers))
	for _, x := range s {
		rest = append(rest, x.without(numbers)...)
	}
	return rest
}

// without gives what is left of a span when some of its letters are taken out.
func (x span) without(numbers []int64) (rest spans) {
	from := x.From
	i, _ := slices.BinarySearch(numbers, x.From)
	for ; i < len(numbers) && numbers[i] < x.To; i++ {
		if numbers[i] > from {
			rest = append(rest, span{from, numbers[i], x.At})
		}
		from = numbers[i] + 1
	}
	if from < x.To {
		rest = append(rest, span{from, x.To, x.At})
	}
	return rest
}

// below gives what there is of letters before one.
func (s spans) below(next int64) spans {
	var rest spans
	for _, x := range s {
		if x.To = min(x.To, next); x.From < x.To {
			rest = append(rest, x)
		}
	}
	return rest
}

// joined makes neighbours one that belong to the same time.
func (s spans) joined() spans {
	out := s[:0:0]
	for _, x := range s {
		if last := len(out) - 1; last >= 0 && out[last].To == x.From && out[last].At == x.At {
			out[last].To = x.To
			continue
		}
		out = append(out, x)
	}
	return out
}
