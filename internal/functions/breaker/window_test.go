package breaker

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return epoch.Add(d) }

func tally(term int64, buckets ...Bucket) Tally { return Tally{Term: term, Buckets: buckets} }

func TestTheWindowHasWhatIsYoungerThanWithin(t *testing.T) { // F5
	var w Window
	w.Add(1, 2, at(0))
	w.Add(1, 3, at(10*time.Second))
	for _, tt := range []struct {
		name string
		now  time.Duration
		want int
	}{
		{"all at first", 10 * time.Second, 5},
		{"all until the oldest is as old as the window", 30*time.Second - 1, 5},
		{"what is as old as the window is out of it", 30 * time.Second, 3},
		{"nothing in the end", 40 * time.Second, 0},
	} {
		got := w.Tally(30*time.Second, at(tt.now))
		if got.Count() != tt.want || got.Total != 5 || got.Term != 1 {
			t.Errorf("%s: %+v, want %d", tt.name, got, tt.want)
		}
		testkit.Equal(t, Sum(1, 30*time.Second, got, nil, at(tt.now)), tt.want, "%s: the sum", tt.name)
	}
}

func TestAnotherTermForgetsTheFailuresBefore(t *testing.T) { // F5
	var w Window
	w.Add(1, 50, at(0))
	w.Add(3, 1, at(time.Second))
	if got := w.Tally(time.Minute, at(time.Second)); got.Count() != 1 || got.Term != 3 || got.Total != 51 {
		t.Errorf("%+v", got)
	}
	w.Add(3, 0, at(time.Second))
	w.Add(4, -1, at(time.Second))
	if got := w.Tally(time.Minute, at(time.Second)); got.Count() != 1 || got.Term != 3 {
		t.Errorf("no failure at all changed it to %+v", got)
	}
}

// R1: whatever total somebody wrote in its name, an instance's next decision can be read.
func TestATotalThatNobodyReachesIsNotGoneOnFrom(t *testing.T) {
	for _, total := range []int64{maxTotal + 1, maxTerm, math.MaxInt64} {
		var w Window
		w.GoOn(total)
		w.Add(0, 100, time.Now())
		testkit.Must(t, testkit.Err(DecodeRecord(EncodeRecord(Record{Decided: map[string]int64{"a": w.Total()}}))), "after %d", total)
	}
	var w Window
	w.GoOn(7)
	w.GoOn(3)
	testkit.Equal(t, w.Total(), 7)
}

func TestSumOfWhatOthersHaveWritten(t *testing.T) { // F5
	within := 30 * time.Second
	twenty := tally(2, Bucket{Age: 20 * time.Second, Count: 7}, Bucket{Age: time.Second, Count: 2})
	for _, tt := range []struct {
		name   string
		own    Tally
		others []Seen
		want   int
	}{
		{"nothing", Tally{}, nil, 0},
		{"one's own", twenty, nil, 9},
		{"another's, seen just now", tally(2), []Seen{{twenty, at(0)}}, 9},
		{"another's, which has aged since it was seen", tally(2), []Seen{{twenty, at(-10 * time.Second)}}, 2},
		{"another's, which is long out of the window", tally(2), []Seen{{twenty, at(-time.Hour)}}, 0},
		{"the sum of all", twenty, []Seen{{twenty, at(0)}, {twenty, at(-9 * time.Second)}}, 27},
		{"an earlier term's do not count", tally(1, Bucket{Count: 5}), []Seen{{tally(1, Bucket{Count: 100}), at(0)}}, 0},
		{"nor do those of a later, which has yet to be heard of", tally(2), []Seen{{tally(3, Bucket{Count: 100}), at(0)}}, 0},
		{"an observer whose clock was read later makes nobody younger", tally(2), []Seen{{twenty, at(time.Hour)}}, 9},
		{"sums do not overflow", tally(2, Bucket{Count: 1 << 62}, Bucket{Count: 1 << 62}), []Seen{{tally(2, Bucket{Count: 1 << 62}), at(0)}}, maxCount},
		{"ages do not overflow", tally(2), []Seen{{tally(2, Bucket{Age: 1<<63 - 1, Count: 1}), at(-200 * 365 * 24 * time.Hour)}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, Sum(2, within, tt.own, tt.others, at(0)), tt.want)
		})
	}
}

func TestSoManyFailuresAreKeptExactly(t *testing.T) { // F5: the default is 100
	var w Window
	for i := range maxBuckets {
		w.Add(1, 1, at(time.Duration(i)*200*time.Millisecond))
	}
	last := time.Duration(maxBuckets-1) * 200 * time.Millisecond
	for _, within := range []time.Duration{time.Second, 10 * time.Second, 25 * time.Second} {
		v := w // a value, so that what one asks does not change what the next gets
		v.buckets = append([]span(nil), w.buckets...)
		if got, want := v.Tally(within, at(last)).Count(), int(within/(200*time.Millisecond)); got != want {
			t.Errorf("within %v there are %d, want %d", within, got, want)
		}
	}
}

// Against a list of all failures: never fewer than there are, and none that is older than the
// window by more than a part of it; bounded, however many there are.
func TestTheWindowAgainstAListOfAll(t *testing.T) { // F5
	rapid.Check(t, func(t *rapid.T) {
		within := time.Duration(rapid.IntRange(1, 100_000).Draw(t, "within")) * time.Millisecond
		var w Window
		type failure struct {
			at time.Time
			n  int
		}
		var all []failure
		now := epoch
		count := func(within time.Duration) (n int) {
			for _, f := range all {
				if now.Sub(f.at) < within {
					n += f.n
				}
			}
			return n
		}
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(within)/50).Draw(t, "pause")))
			n := rapid.IntRange(1, 5).Draw(t, "n")
			w.Add(9, n, now)
			all = append(all, failure{now, n})
			got := w.Tally(within, now)
			least, most := count(within), count(within+within/60+leastGrain)
			if c := got.Count(); c < least || c > most || len(got.Buckets) > maxBuckets {
				t.Fatalf("%d failures in %d buckets, want %d to %d", c, len(got.Buckets), least, most)
			}
		}
	})
}

// F5, R7: a whole window in which calls found nothing but what is down, here, and in which nobody
// found otherwise.
func TestAllDown(t *testing.T) {
	const within = 30 * time.Second
	var w Window
	down := func(term int64, others ...Seen) bool {
		return AllDown(term, within, w.Tally(within, at(time.Minute)), others, at(time.Minute))
	}
	w.FoundDown(3, time.Minute, at(-time.Hour))
	w.FoundDown(3, 0, at(0))
	testkit.That(t, !down(3), "one call is no window, nor one of long ago")
	w.FoundDown(3, 0, at(within-1))
	testkit.That(t, !down(3), "not the whole window")
	w.FoundDown(3, 0, at(within))
	testkit.That(t, down(3), "the whole window")
	testkit.That(t, !down(4), "it is another term's")
	ago := func(up, seen time.Duration) Seen { return Seen{Tally: Tally{Up: up}, At: at(time.Minute - seen)} }
	testkit.That(t, !down(3, ago(0, 0), ago(1, within-2)), "another has reached it")
	testkit.That(t, down(3, ago(0, 0), ago(1, within-1), ago(within, 0)), "none has lately")
	read, err := DecodeTally(EncodeTally(w.Tally(within, at(time.Minute))))
	testkit.Must(t, err)
	testkit.Equal(t, read.Down, within, "it is shared")
	w.FoundUp(at(40 * time.Second))
	testkit.That(t, !down(3), "it was up")
	testkit.Equal(t, w.Tally(within, at(time.Minute)).Up, 20*time.Second, "since it was up")
	testkit.Equal(t, w.Tally(within, at(70*time.Second)).Up, 0, "that is too long ago")
	w.FoundDown(3, 0, at(0))
	w.FoundDown(3, 0, at(within))
	w.Turn(4)
	testkit.That(t, !down(4), "a term begins with none")
	for _, bad := range []string{`{"down":-1}`, `{"up":-1}`} {
		testkit.ErrorIs(t, testkit.Err(DecodeTally([]byte(bad))), ErrUnreadable, "%s", bad)
	}
}

// R7: that a call succeeded is shared by when it began, and kept for as long as nothing newer has.
func TestASuccessIsSharedByWhenItBegan(t *testing.T) {
	const within = 30 * time.Second
	var w Window
	good := func(now time.Duration) time.Duration {
		t.Helper()
		read, err := DecodeTally(EncodeTally(w.Tally(within, at(now))))
		testkit.Must(t, err)
		return read.Good
	}
	testkit.Equal(t, good(0), 0, "none")
	w.FoundUp(at(time.Second))
	testkit.Equal(t, good(time.Second), 0, "an answer is no success")
	w.Succeeded(at(2*time.Second), at(7*time.Second))
	testkit.Equal(t, good(7*time.Second), 5*time.Second, "it took a while")
	w.Succeeded(at(time.Second), at(8*time.Second))
	testkit.Equal(t, good(8*time.Second), 6*time.Second, "one that ended later, but began before")
	w.Turn(9)
	w.FoundDown(9, 0, at(9*time.Second))
	testkit.Equal(t, good(2*time.Minute), 118*time.Second, "whatever comes then")
	w.Succeeded(at(3*time.Minute), at(3*time.Minute))
	testkit.Equal(t, good(3*time.Minute), 1, "it is never none again")
	old, err := DecodeTally([]byte(`{"term":3,"total":5,"down":7}`))
	testkit.Must(t, err, "of a version without it")
	testkit.Equal(t, old.Good, 0)
	testkit.ErrorIs(t, testkit.Err(DecodeTally([]byte(`{"good":-1}`))), ErrUnreadable)
}

// R7: of those that found nothing but what is down the newest counts, within the window.
func TestNewestDown(t *testing.T) {
	down := func(term int64, seen time.Duration) Seen {
		return Seen{Tally: Tally{Term: term, Down: 1}, At: at(seen)}
	}
	others := []Seen{down(3, 5*time.Second), down(3, 9*time.Second), down(2, 20*time.Second), {Tally: Tally{Term: 3, Up: 1}, At: at(25 * time.Second)}}
	testkit.Equal(t, NewestDown(3, 30*time.Second, others, at(26*time.Second)), at(9*time.Second))
	testkit.Equal(t, NewestDown(3, 30*time.Second, others, at(39*time.Second)), time.Time{}, "it is long ago")
	testkit.Equal(t, NewestDown(4, 30*time.Second, others, at(26*time.Second)), time.Time{}, "of another term")
}

// F5: calls that are far apart tell of the time between them if that was to be, and not where
// nothing more was expected.
func TestALongWaitIsNoSilence(t *testing.T) {
	const within, wait = 30 * time.Second, 2 * time.Hour
	for _, c := range []struct {
		name string
		play func(w *Window)
		then time.Duration // when the next call finds it down
		want bool
	}{
		{"in time", nil, wait + time.Minute, true},
		{"just in time", nil, wait + slack, true},
		{"too late", nil, wait + slack + 1, false},
		{"before its time, another's", nil, time.Minute, true},
		{"another's waits are shorter", func(w *Window) { w.FoundDown(3, time.Second, at(time.Second)) }, wait, true},
		{"it was up meanwhile", func(w *Window) { w.FoundUp(at(time.Minute)) }, wait, false},
		{"it was given up", func(w *Window) { w.GaveUp(at(time.Minute)) }, wait, false},
		{"one was given up, and there are others", func(w *Window) { w.GaveUp(at(time.Minute)) }, time.Minute + slack, true},
		{"it was given up when it was long due", func(w *Window) { w.GaveUp(at(wait + slack)) }, wait + slack + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Window
			w.FoundDown(3, wait, at(0))
			if c.play != nil {
				c.play(&w)
			}
			w.FoundDown(3, wait, at(c.then))
			testkit.Equal(t, AllDown(3, within, w.Tally(within, at(c.then)), nil, at(c.then)), c.want)
		})
	}
}
