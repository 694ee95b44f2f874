package triage

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSetText(t *testing.T) {
	tests := []struct {
		name, text string
		set        Set
	}{
		{"nothing is the empty text", "", nil},
		{"a single number", "7", Set{{7, 7}}},
		{"ranges and numbers", "0-2,5,9-11", Set{{0, 2}, {5, 5}, {9, 11}}},
		{"two neighbours are a range", "3-4", Set{{3, 4}}},
		{"the greatest number", "9223372036854775806-9223372036854775807", Set{{math.MaxInt64 - 1, math.MaxInt64}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.set.String(); got != test.text {
				t.Errorf("text %q, want %q", got, test.text)
			}
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
		if s.String() != string(text) {
			t.Fatalf("%q has another spelling: %q", text, s)
		}
		if !s.valid() {
			t.Fatalf("%q was read as %v, which is no set", text, s)
		}
		if left, right := s.halves(); !left.Union(right).Equal(s) || len(left.Intersect(right)) > 0 {
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
		same(t, "union", a.Union(b), func(i int64) bool { return inA[i] || inB[i] })
		same(t, "both", a.Intersect(b), func(i int64) bool { return inA[i] && inB[i] })
		same(t, "minus", a.Minus(b), func(i int64) bool { return inA[i] && !inB[i] })
		same(t, "above", a.Above(n), func(i int64) bool { return inA[i] && i > n })
		if n >= 0 {
			same(t, "add", a.Add(n), func(i int64) bool { return inA[i] || i == n })
		}
		if a.Len() != int64(len(inA)) {
			t.Errorf("len %d, want %d", a.Len(), len(inA))
		}
		if len(inA) > 0 {
			sorted := slices.Sorted(maps.Keys(inA))
			if a.First() != sorted[0] || a.Last() != sorted[len(sorted)-1] {
				t.Errorf("from %d to %d, want %d to %d", a.First(), a.Last(), sorted[0], sorted[len(sorted)-1])
			}
		}
		halvesFit(t, a)
		if after := a.String() + " " + b.String(); after != before {
			t.Errorf("the sets were %s and are %s", before, after)
		}
	})
}

func same(t *rapid.T, name string, s Set, in func(int64) bool) {
	t.Helper()
	if !s.valid() {
		t.Errorf("%s: %v is no set", name, s)
	}
	if len(s) == 0 && s != nil {
		t.Errorf("%s: it is empty and not nil", name)
	}
	for i := range int64(32) {
		if s.Has(i) != in(i) {
			t.Errorf("%s: %v: has %d is %v", name, s, i, s.Has(i))
		}
	}
}

func halvesFit(t *rapid.T, s Set) {
	left, right := s.halves()
	if !left.Union(right).Equal(s) || len(left.Intersect(right)) > 0 || len(right) > 0 && left.Last() >= right.First() {
		t.Errorf("%v has halves %v and %v", s, left, right)
	}
	if more := left.Len() - right.Len(); more < 0 || more > 1 {
		t.Errorf("halves %v and %v are not equal", left, right)
	}
}

func TestEmptySet(t *testing.T) {
	var s Set
	if s.First() != -1 || s.Last() != -1 || s.Len() != 0 || s.Has(0) {
		t.Errorf("first %d, last %d, len %d, has 0: %v", s.First(), s.Last(), s.Len(), s.Has(0))
	}
}

func TestGreatSetsDoNotOverflow(t *testing.T) {
	all := Set{{0, math.MaxInt64}}
	if all.Len() != math.MaxInt64 {
		t.Errorf("len %d", all.Len())
	}
	if got := all.Above(math.MaxInt64); got != nil {
		t.Errorf("above the greatest is %v", got)
	}
	if got := all.Minus(Set{{5, 5}}); got.String() != "0-4,6-9223372036854775807" {
		t.Errorf("without 5: %v", got)
	}
	if got := (Set{{math.MaxInt64, math.MaxInt64}}).Union(Set{{0, math.MaxInt64 - 1}}); !got.Equal(all) {
		t.Errorf("union %v", got)
	}
	if left, right := all.halves(); !left.Union(right).Equal(all) {
		t.Errorf("halves %v, %v", left, right)
	}
}

func TestAddLeavesCopiesAlone(t *testing.T) {
	a := SetOf(1, 2, 5)
	b, c := a.Add(3), a.Add(6)
	if a.String() != "1-2,5" || b.String() != "1-3,5" || c.String() != "1-2,5-6" {
		t.Errorf("%v, %v, %v", a, b, c)
	}
}
