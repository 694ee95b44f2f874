package filter

import "slices"

// census counts, for one slot, how many conditions are filed by what, if all were.
type census struct {
	texts    [inContains]map[string]int
	bools    [2]int
	contains int
	// negative, present and absent are found by whatever value there is, or by none.
	negative, present, absent int
	// lows and highs are the ends of spans; sorted once the first cost is asked for.
	lows, highs []bound
	sorted      bool
}

func (c *census) add(of *cond) {
	if of.missing {
		c.absent++
	}
	if of.negative {
		c.negative++
		return
	}
	switch where := of.bucket(); where {
	case inSpans:
		for _, s := range of.spans {
			c.lows, c.highs = append(c.lows, s.low), append(c.highs, s.high)
		}
	case inBools:
		c.bools[boolBucket(of.yes)]++
	case inContains:
		c.contains += len(of.texts)
	case inPresent:
		c.present++
	case inEqual, inBegins, inEnds:
		if c.texts[where] == nil {
			c.texts[where] = make(map[string]int)
		}
		for _, t := range of.texts {
			c.texts[where][t.folded]++
		}
	}
}

// cost guesses how many filters an event will meet that has what a condition wants.
func (c *census) cost(of *cond) int {
	if of.negative {
		return max(c.negative, c.absent)
	}
	switch where := of.bucket(); where {
	case inSpans:
		return c.spansCost(of.spans)
	case inBools:
		return c.bools[boolBucket(of.yes)]
	case inContains:
		return c.contains // each is looked for in every text, which is about as much work
	case inEqual, inBegins, inEnds:
		return c.textsCost(where, of.texts)
	}
	return c.present
}

func (c *census) textsCost(where bucket, texts []text) int {
	sum := 0
	for _, t := range texts {
		if t.folded == "" && where != inEqual {
			// Every text begins and ends with this.
			return c.negative + c.present + c.contains + len(c.lows) + len(c.texts[inEqual]) + len(c.texts[inBegins]) + len(c.texts[inEnds])
		}
		sum += c.texts[where][t.folded]
	}
	return sum
}

// spansCost is how many spans share the ends of these. One that is open to a side is met by
// half of all numbers, for want of a better guess.
func (c *census) spansCost(spans []span) int {
	if !c.sorted {
		slices.SortFunc(c.lows, bound.compare)
		slices.SortFunc(c.highs, bound.compare)
		c.sorted = true
	}
	sum := 0
	for _, s := range spans {
		if s.low.at == lowest || s.high.at == highest {
			sum += (len(c.lows) + 1) / 2
			continue
		}
		sum += max(c.around(s.low), c.around(s.high))
	}
	return sum
}

// around is how many spans a bound is in.
func (c *census) around(at bound) int {
	begun, _ := slices.BinarySearchFunc(c.lows, at, func(b, at bound) int {
		if b.compare(at) <= 0 {
			return -1
		}
		return 1
	})
	ended, _ := slices.BinarySearchFunc(c.highs, at, bound.compare)
	return begun - ended
}
