package filter

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A set of texts finds those that begin another, and no others.
func TestPrefixes(t *testing.T) {
	word := rapid.StringMatching(`[ab]{0,5}`)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfNDistinct(word, 1, 20, rapid.ID[string]).Draw(t, "texts")
		of := word.Draw(t, "of")
		ids := map[string][]int32{}
		m := &Matcher{index: &Index{plans: make([]plan, len(texts))}, tried: make([]uint64, 1), matched: make([]uint64, 1)}
		var want []int
		for i, text := range texts {
			ids[text] = []int32{int32(i)}
			m.index.plans[i].number = int32(i)
			if strings.HasPrefix(of, text) {
				want = append(want, i)
			}
		}
		m.eachPrefix(newPrefixes(ids), []byte(of), settled)
		testkit.MustSlices(t, m.collect(nil), want, "%q begins with %v of %q", of, want, texts)
	})
}

// A set of spans finds those that a number is in, and no others.
func TestSpans(t *testing.T) {
	makers := []func(num) span{exactly, below, above, atMost, atLeast}
	digit := rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
	rapid.Check(t, func(t *rapid.T) {
		number := func(label string) num { n, _ := parseNum([]byte(digit.Draw(t, label))); return n }
		m := &Matcher{index: &Index{}, tried: make([]uint64, 1), matched: make([]uint64, 1)}
		var all []filedSpan
		var want []int
		at := number("at")
		for i := range rapid.IntRange(1, 40).Draw(t, "spans") {
			s := rapid.SampledFrom(makers).Draw(t, "maker")(number("number"))
			if both := intersect(s, rapid.SampledFrom(makers).Draw(t, "maker")(number("number"))); len(both) == 1 {
				s = both[0]
			}
			all = append(all, filedSpan{s, int32(i)})
			m.index.plans = append(m.index.plans, plan{number: int32(i)})
			if s.contains(at) {
				want = append(want, i)
			}
		}
		m.eachSpan(newSpans(all), at, settled)
		testkit.MustSlices(t, m.collect(nil), want, "in %v", want)
	})
}
