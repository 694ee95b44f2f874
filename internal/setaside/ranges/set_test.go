package ranges

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestSetText(t *testing.T) {
	for _, test := range []struct {
		name, text string
		set        Set
	}{
		{"nothing is the empty text", "", nil},
		{"a single number", "7", Set{{7, 7}}},
		{"ranges and numbers", "0-2,5,9-11", Set{{0, 2}, {5, 5}, {9, 11}}},
		{"two neighbours are a range", "3-4", Set{{3, 4}}},
		{"the greatest number", "9223372036854775806-9223372036854775807", Set{{math.MaxInt64 - 1, math.MaxInt64}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, test.set.String(), test.text, "text")
			var got Set
			if err := got.UnmarshalText([]byte(test.text)); err != nil || !cmp.Equal(got, test.set) {
				t.Errorf("read %v, %v, want %v", got, err, test.set)
			}
		})
	}
}

func TestSetTextOfStrangers(t *testing.T) {
	for _, text := range []string{
		"-1", "1-", "-", ",", "1,", ",1", "2,1", "1,1", "1-3,2", "1-3,3-5", "1-3,4", "1,2", "3-3", "5-3", "01", "1-02", "+1", " 1", "1 ", "1_0",
		"9223372036854775808", "1--2", "1-2-3", "a", "0x1", "1\x00", "９",
	} {
		set := SetOf(1)
		if err := set.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, set)
		} else if set != nil {
			t.Errorf("%q left %v behind", text, set)
		}
	}
}

func FuzzSet(f *testing.F) {
	for _, text := range []string{"", "3-5,9", "1,1", "5-3", "0-9223372036854775807", "1-2,3"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Set
		if s.UnmarshalText(text) != nil {
			return
		}
		testkit.MustEqual(t, s.String(), string(text), "%q has another spelling: %q", text, s)
		if !s.Valid() {
			t.Fatalf("%q was read as %v, which is no set", text, s)
		}
		if left, right := s.Halves(); !left.Union(right).Equal(s) || len(left.Intersect(right)) > 0 {
			t.Fatalf("%q has halves %v and %v", text, left, right)
		}
	})
}

// modelSet draws a set and the same as a map.
func modelSet(t *rapid.T, name string) (Set, map[int64]bool) {
	numbers := rapid.SliceOfN(rapid.Int64Range(0, 30), 0, 20).Draw(t, name)
	model := map[int64]bool{}
	for _, n := range numbers {
		model[n] = true
	}
	return SetOf(numbers...), model
}

func TestSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, inA := modelSet(t, "a")
		b, inB := modelSet(t, "b")
		n := rapid.Int64Range(-1, 31).Draw(t, "n")
		before := a.String() + " " + b.String()

		same(t, "a", a, func(i int64) bool { return inA[i] })
		testkit.Slices(t, slices.Collect(a.All()), slices.Sorted(maps.Keys(inA)))
		for first := range a.All() {
			testkit.Equal(t, first, a.First())
			break
		}
		same(t, "union", a.Union(b), func(i int64) bool { return inA[i] || inB[i] })
		same(t, "both", a.Intersect(b), func(i int64) bool { return inA[i] && inB[i] })
		same(t, "minus", a.Minus(b), func(i int64) bool { return inA[i] && !inB[i] })
		same(t, "above", a.Above(n), func(i int64) bool { return inA[i] && i > n })
		if n >= 0 {
			same(t, "add", a.Add(n), func(i int64) bool { return inA[i] || i == n })
		}
		testkit.Equal(t, a.Len(), int64(len(inA)), "len: want %d", len(inA))
		if len(inA) > 0 {
			sorted := slices.Sorted(maps.Keys(inA))
			if a.First() != sorted[0] || a.Last() != sorted[len(sorted)-1] {
				t.Errorf("from %d to %d, want %d to %d", a.First(), a.Last(), sorted[0], sorted[len(sorted)-1])
			}
		}
		if r := (Range{max(n, 0), max(n, 0) + 2}); a.Overlaps(r) != (inA[r.First] || inA[r.First+1] || inA[r.Last]) {
			t.Errorf("%v overlaps %v: %t", a, r, a.Overlaps(r))
		}
		next := n
		for next < 31 && !inA[next] {
			next++
		}
		if next == 31 {
			next = -1
		}
		testkit.Equal(t, a.Next(n), next, "%v: next from %d", a, n)
		halvesFit(t, a)
		testkit.Equal(t, a.String()+" "+b.String(), before, "the sets were %s and", before)
	})
}

func same(t *rapid.T, name string, s Set, in func(int64) bool) {
	t.Helper()
	if !s.Valid() {
		t.Errorf("%s: %v is no set", name, s)
	}
	if len(s) == 0 && s != nil {
		t.Errorf("%s: it is empty and not nil", name)
	}
	for i := range int64(32) {
		testkit.Equal(t, s.Has(i), in(i), "%s: %v: has %d", name, s, i)
	}
}

func halvesFit(t *rapid.T, s Set) {
	left, right := s.Halves()
	if !left.Union(right).Equal(s) || len(left.Intersect(right)) > 0 || len(right) > 0 && left.Last() >= right.First() {
		t.Errorf("%v has halves %v and %v", s, left, right)
	}
	if more := left.Len() - right.Len(); more < 0 || more > 1 {
		t.Errorf("halves %v and %v are not equal", left, right)
	}
}

func TestEmptySet(t *testing.T) {
	var s Set
	testkit.Slices(t, []any{s.First(), s.Last(), s.Len(), s.Has(0)}, []any{int64(-1), int64(-1), int64(0), false}, "first")
}

func TestGreatSetsDoNotOverflow(t *testing.T) {
	all := Set{{0, math.MaxInt64}}
	testkit.Equal(t, all.Len(), math.MaxInt64, "len")
	if got := all.Above(math.MaxInt64); got != nil {
		t.Errorf("above the greatest is %v", got)
	}
	testkit.Equal(t, all.Minus(Set{{5, 5}}).String(), "0-4,6-9223372036854775807", "without 5")
	if got := (Set{{math.MaxInt64, math.MaxInt64}}).Union(Set{{0, math.MaxInt64 - 1}}); !got.Equal(all) {
		t.Errorf("union %v", got)
	}
	if left, right := all.Halves(); !left.Union(right).Equal(all) {
		t.Errorf("halves %v, %v", left, right)
	}
}

func TestAddLeavesCopiesAlone(t *testing.T) {
	a := SetOf(1, 2, 5)
	b, c := a.Add(3), a.Add(6)
	testkit.Slices(t, []any{a.String(), b.String(), c.String()}, []any{"1-2,5", "1-3,5", "1-2,5-6"})
}

// What is claimed was free, and is claimed whole or not at all.
func TestClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var claimed Set
		taken := map[int64]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "claims") {
			r := Range{First: rapid.Int64Range(0, 28).Draw(t, "first")}
			r.Last = r.First - 1 + rapid.Int64Range(0, 4).Draw(t, "length")
			free := r.First <= r.Last
			for n := r.First; n <= r.Last; n++ {
				free = free && !taken[n]
			}
			testkit.MustEqual(t, claimed.Claim(r), free, "%v claimed of %v", r, claimed)
			for n := r.First; free && n <= r.Last; n++ {
				taken[n] = true
			}
		}
		same(t, "claimed", claimed, func(n int64) bool { return taken[n] })
	})
}

// Each number has the time that it was given last.
func TestTimedIsASetWithTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var timed Timed
		times := map[int64]int64{}
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			numbers, in := modelSet(t, "numbers")
			before := slices.Clone(timed)
			next := timed
			switch at := rapid.Int64Range(0, 4).Draw(t, "at"); at {
			case 0:
				next = timed.Without(numbers)
				maps.DeleteFunc(times, func(n, _ int64) bool { return in[n] })
			default:
				next = timed.With(numbers, at)
				for n := range in {
					times[n] = at
				}
			}
			if !slices.Equal(timed, before) {
				t.Fatalf("%v became %v", before, timed)
			}
			timed = next
		}
		below := rapid.Int64Range(0, 31).Draw(t, "below")
		sameTimes(t, timed, times)
		maps.DeleteFunc(times, func(n, _ int64) bool { return n >= below })
		testkit.Equal(t, timed.Within(Range{0, below - 1}), int64(len(times)), "of")
		sameTimes(t, timed.Below(below), times)
	})
}

func sameTimes(t *rapid.T, timed Timed, want map[int64]int64) {
	t.Helper()
	last := int64(-1)
	for n := range int64(33) {
		s, found := timed.Find(n)
		if at, wanted := want[n]; found != wanted || found && (s.At != at || n < s.First || n > s.Last) {
			t.Fatalf("%v: %d is in %v, %t, want %d, %t", timed, n, s, found, at, wanted)
		}
		if found {
			last = n
		}
	}
	testkit.Equal(t, timed.Last(), last, "%v: the last", timed)
	for i := 1; i < len(timed); i++ {
		if a, b := timed[i-1], timed[i]; a.Last >= b.First || a.Last+1 == b.First && a.At == b.At {
			t.Errorf("%v is not in order, or not joined", timed)
		}
	}
}
