package busiest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// stream is a sketch of events with the truth beside it.
type stream struct {
	Sketch
	truth map[string]int64
}

func newStream() *stream { return &stream{truth: map[string]int64{}} }

func (s *stream) add(key string) {
	s.Add([]byte(key))
	if key != "" {
		s.truth[key]++
	}
}

// random is a stream whose few busy keys and many others come in any order, or in one that is unkind.
func random(r *rand.Rand) *stream {
	s, keys, skew := newStream(), 1+r.IntN(200), 1+r.Float64()*4
	for range r.IntN(3000) {
		switch r.IntN(20) {
		case 0:
			s.add("")
		case 1:
			s.add(fmt.Sprint("once-", len(s.truth))) // a key that never comes again
		default:
			at := 1.0
			for range int(skew) {
				at *= r.Float64()
			}
			s.add(fmt.Sprint("k", int(at*float64(keys))))
		}
	}
	return s
}

// wantBounds holds a tally against the truth: most is how far off it may be.
func wantBounds(t *testing.T, got Tally, truth map[string]int64, most int64) {
	t.Helper()
	listed := map[string]bool{}
	for i, k := range got.Keys {
		n := truth[k.Key]
		listed[k.Key] = true
		testkit.That(t, n <= k.Count && n >= k.Count-k.Excess, "%s has had %d events, and is told to have had %d to %d", k.Key, n, k.Count-k.Excess, k.Count)
		testkit.That(t, k.Excess <= most && k.Excess >= 0, "the count of %s may be off by %d, and %d is the most", k.Key, k.Excess, most)
		testkit.That(t, i == 0 || k.Count <= got.Keys[i-1].Count, "%s stands behind one with fewer", k.Key)
	}
	for key, n := range truth {
		testkit.That(t, listed[key] || n <= got.Rest, "%s has had %d events and is not listed, and the rest is %d", key, n, got.Rest)
	}
	testkit.That(t, got.Rest <= most, "the rest is %d, and %d is the most", got.Rest, most)
}

// V1: no key has had more events than its count, none that is not listed more than an even share of the
// counters, and no count is too high by more than that.
func TestCountsAreWithinTheirBounds(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := random(rand.New(rand.NewPCG(seed, 1)))
			got := s.Tally()
			var keyed int64
			for _, n := range s.truth {
				keyed += n
			}
			testkit.Equal(t, got.Keyed, keyed, "events with a key")
			testkit.That(t, got.Events >= keyed && len(got.Keys) <= Counters, "%d events, %d keys", got.Events, len(got.Keys))
			wantBounds(t, got, s.truth, keyed/Counters)
		})
	}
}

// V1: the bounds hold for what several sketches have counted together, also where only some of their
// keys are known.
func TestSumsAreWithinTheirBounds(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			truth, parts, whole := map[string]int64{}, []Tally{}, int64(0)
			for range 1 + r.IntN(4) {
				s := random(r)
				for key, n := range s.truth {
					truth[key] += n
				}
				tally := s.Tally()
				if seed%2 == 0 {
					tally = tally.Cut(1 + r.IntN(Counters))
				}
				parts, whole = append(parts, tally), whole+s.keyed
			}
			got := Sum(parts...)
			for key, n := range truth {
				busy := seed%2 == 1 && n > whole/Counters
				testkit.That(t, !busy || slices.ContainsFunc(got.Keys, func(k Key) bool { return k.Key == key }), "%s has %d of %d events, and is not told of", key, n, whole)
			}
			testkit.That(t, got.Keyed == whole && len(got.Keys) <= Counters, "%d events with a key of %d, %d keys", got.Keyed, whole, len(got.Keys))
			wantBounds(t, got, truth, whole)
		})
	}
}

// A sum of one is that one, and of none is nothing.
func TestSumOfOne(t *testing.T) {
	s := newStream()
	for i := range 1000 {
		s.add(fmt.Sprint(i % 37))
	}
	testkit.Deep(t, Sum(s.Tally()), s.Tally())
	testkit.Equal(t, len(Sum().Keys), 0)
}

// Few keys are counted exactly, and forgotten when they shall be.
func TestFewKeysAreCountedExactly(t *testing.T) {
	s := newStream()
	for range 2 {
		for i := range 100 {
			s.add([]string{"a", "b", "", "a"}[i%4])
		}
		testkit.Deep(t, s.Tally(), Tally{Events: 100, Keyed: 75, Keys: []Key{{"a", 50, 0}, {"b", 25, 0}}})
		s.Reset()
	}
	testkit.Deep(t, s.Tally(), Tally{})
}

// R3: what was allocated for keys is used again.
func TestCountingAllocatesNothing(t *testing.T) {
	var s Sketch
	keys := make([][]byte, 100)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%03d", i)
		s.Add(keys[i])
	}
	next := 0
	testkit.Equal(t, testing.AllocsPerRun(1000, func() { s.Add(keys[next%len(keys)]); next++ }), 0, "allocations for an event")
}
