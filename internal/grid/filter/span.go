package filter

import "cmp"

// span is the numbers from low to high.
type span struct{ low, high bound }

// bound is a point next to a number, so that spans with and without their ends compare
// alike: side is -1 just before the number, 0 at it, 1 just behind it.
type bound struct {
	at   num
	side int8
}

func (b bound) compare(other bound) int {
	if c := b.at.compare(other.at); c != 0 {
		return c
	}
	return cmp.Compare(b.side, other.side)
}

func exactly(n num) span         { return between(n, n) }
func between(low, high num) span { return span{bound{at: low}, bound{at: high}} }
func below(n num) span           { return span{bound{at: lowest}, bound{n, -1}} }
func above(n num) span           { return span{bound{n, 1}, bound{at: highest}} }
func atMost(n num) span          { return span{bound{at: lowest}, bound{at: n}} }
func atLeast(n num) span         { return span{bound{at: n}, bound{at: highest}} }

func (s *span) contains(n num) bool {
	if c := n.compare(s.low.at); c < 0 || c == 0 && s.low.side > 0 {
		return false
	}
	c := n.compare(s.high.at)
	return c < 0 || c == 0 && s.high.side >= 0
}

// intersect gives what is in both spans: one, or none at all.
func intersect(a, b span) []span {
	both := a
	if b.low.compare(a.low) > 0 {
		both.low = b.low
	}
	if b.high.compare(a.high) < 0 {
		both.high = b.high
	}
	if both.high.compare(both.low) < 0 {
		return nil
	}
	return []span{both}
}
