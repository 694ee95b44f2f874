package watermark_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/watermark"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G5: what is not finished holds the mark, whatever is finished above it.
func TestMark(t *testing.T) {
	begin := func(n int64) func(*watermark.Mark) { return func(m *watermark.Mark) { m.Begin(n) } }
	pass := func(n int64) func(*watermark.Mark) { return func(m *watermark.Mark) { m.Pass(n) } }
	finish := func(n int64) func(*watermark.Mark) { return func(m *watermark.Mark) { m.Finish(n) } }
	type steps []func(*watermark.Mark)
	tests := []struct {
		name      string
		steps     steps
		low, next int64
		open      int
	}{
		{"a fresh mark is where it begins", nil, 10, 10, 0},
		{"what is under way holds it", steps{begin(10)}, 10, 11, 1},
		{"what is finished lets it go", steps{begin(10), finish(10)}, 11, 11, 0},
		{"the lowest under way holds it", steps{begin(10), begin(11), begin(12), finish(11)}, 10, 13, 2},
		{"it goes over what was finished before", steps{begin(10), begin(11), begin(12), finish(11), finish(10)}, 12, 13, 1},
		{"passing moves it where nothing is under way", steps{pass(500)}, 500, 500, 0},
		{"passing does not move it over what is under way", steps{begin(10), pass(500)}, 10, 500, 1},
		{"finishing moves it over what was passed", steps{begin(10), pass(500), finish(10)}, 500, 500, 0},
		{"passing backwards does nothing", steps{pass(20), pass(15)}, 20, 20, 0},
		{"what a beginning leaves out is passed", steps{begin(15), finish(15)}, 16, 16, 0},
		{"what a beginning leaves out does not hold it", steps{begin(15)}, 15, 16, 1},
		{"finishing twice counts once", steps{begin(10), begin(11), finish(11), finish(11)}, 10, 12, 1},
		{"finishing what was never begun does nothing", steps{begin(10), pass(20), finish(15), finish(30), finish(3)}, 10, 20, 1},
		{"gaps between those under way are no matter", steps{begin(10), begin(90), begin(91), finish(91), finish(10)}, 90, 92, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := watermark.At(10)
			for _, step := range test.steps {
				step(&m)
			}
			if m.Low() != test.low || m.Next() != test.next || m.Open() != test.open {
				t.Errorf("low %d, next %d, open %d, want %d, %d, %d", m.Low(), m.Next(), m.Open(), test.low, test.next, test.open)
			}
		})
	}
}

func TestBeginningBackwardsIsAFault(t *testing.T) {
	m := watermark.At(10)
	m.Pass(20)
	defer func() {
		if recover() == nil {
			t.Error("beginning behind what was passed went unnoticed")
		}
	}()
	m.Begin(19)
}

// The mark agrees with one that keeps all numbers and looks at each.
func TestMarkAgreesWithThePlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		m, plain, next := watermark.At(start), map[int64]bool{}, start
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				next += rapid.Int64Range(0, 1000).Draw(t, "passed")
				m.Pass(next)
			case 1, 2:
				next += max(0, rapid.Int64Range(-3, 3).Draw(t, "gap"))
				m.Begin(next)
				plain[next] = true
				next++
			default:
				n := start + rapid.Int64Range(-1, next-start).Draw(t, "finished")
				if len(plain) > 0 && rapid.Bool().Draw(t, "an open one") {
					n = rapid.SampledFrom(slices.Sorted(maps.Keys(plain))).Draw(t, "which")
				}
				testkit.MustEqual(t, m.Has(n), plain[n], "%d under way", n)
				m.Finish(n)
				delete(plain, n)
			}
			low := next
			for n := range plain {
				low = min(low, n)
			}
			if m.Low() != low || m.Next() != next || m.Open() != len(plain) {
				t.Fatalf("low %d, next %d, open %d, want %d, %d, %d", m.Low(), m.Next(), m.Open(), low, next, len(plain))
			}
		}
	})
}

// One that is never finished does not make those finished above it cost memory, nor do small
// numbers under way make a long life cost allocations.
func TestOnlyWhatIsUnderWayTakesRoom(t *testing.T) {
	m := watermark.At(0)
	m.Begin(0)
	next := int64(1)
	step := func() {
		for range 8 {
			m.Begin(next)
			next++
		}
		for n := next - 1; n >= next-8; n-- {
			m.Finish(n)
		}
	}
	for range 100 {
		step()
	}
	testkit.Equal(t, testing.AllocsPerRun(10_000, step), 0, "allocations for eight numbers")
	testkit.Equal(t, m.Low(), 0, "low")
	testkit.Equal(t, m.Open(), 1, "open")
}

func BenchmarkMark(b *testing.B) {
	const window = 1000
	m := watermark.At(0)
	for n := range int64(window) {
		m.Begin(n)
	}
	for n := int64(0); b.Loop(); n++ {
		m.Finish(n ^ 1) // a little out of order
		m.Begin(n + window)
	}
}
