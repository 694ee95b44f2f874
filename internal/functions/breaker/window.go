package breaker

import "time"

const (
	// maxBuckets is how finely failures are told apart by age: so many are kept with a time each,
	// more share theirs with neighbours. It is above the default of Policy.Failures, which is
	// therefore judged exactly.
	maxBuckets = 128
	// leastGrain is how close failures have to be to share a bucket in any case.
	leastGrain = time.Millisecond
	// maxCount is where sums stop, so that no tally, however strange, can overflow them.
	maxCount = 1 << 30
	// slack is how much later than it was to be the next call may end, after one that found
	// something down: for both to say anything of the time between them. An instance without
	// partitions makes no calls.
	slack = 5 * time.Minute
	// maxTotal is the highest total that is counted on from: it leaves room up to what a record may
	// hold.
	maxTotal = maxTerm / 2
)

// Window counts one instance's own failures by when they were, on its own monotonic clock. The zero
// value is empty. It is a plain value: who owns it guards it.
type Window struct {
	term    int64
	total   int64
	grain   time.Duration // how long a bucket may last; doubled when there are too many
	buckets []span        // the oldest first
	// down is of the calls since the last that did not find what the function needs down; n is 0
	// where there are none; the next such call is expected by then. up is when that one ended, good when the newest began that succeeded;
	// zero: there was none.
	down           span
	next, up, good time.Time
}

// span is a bucket in the making.
type span struct {
	first, last time.Time
	n           int
}

// Add counts n failures under a term; those of another term are forgotten.
func (w *Window) Add(term int64, n int, now time.Time) {
	if n <= 0 {
		return
	}
	w.Turn(term)
	w.total += int64(n)
	w.grain = max(w.grain, leastGrain)
	if i := len(w.buckets) - 1; i >= 0 && now.Sub(w.buckets[i].first) < w.grain {
		w.buckets[i].last = now
		w.buckets[i].n = plus(w.buckets[i].n, n)
		return
	}
	if len(w.buckets) == maxBuckets {
		w.coarsen()
	}
	w.buckets = append(w.buckets, span{first: now, last: now, n: plus(0, n)})
}

// FoundDown notes, under a term, that a call found what the function needs down, and how long is
// waited before the next for the same events. Waits are up to hours: a program or a policy may ask
// for that.
func (w *Window) FoundDown(term int64, wait time.Duration, now time.Time) {
	w.Turn(term)
	if !w.isDown(now) {
		w.down, w.next = span{first: now, n: 1}, now
	}
	w.down.last = now
	if next := now.Add(max(wait, 0) + slack); next.After(w.next) {
		w.next = next
	}
}

// isDown: all calls found it, and there was none to be that has not been.
func (w *Window) isDown(now time.Time) bool { return w.down.n > 0 && !now.After(w.next) }

// GaveUp notes that events are another instance's from now on, perhaps those for whose next call is
// waited.
func (w *Window) GaveUp(now time.Time) {
	if next := now.Add(slack); next.Before(w.next) {
		w.next = next
	}
}

// FoundUp notes that a call did not, whatever else came of it.
func (w *Window) FoundUp(now time.Time) { w.down, w.up = span{}, now }

// Succeeded is FoundUp by a call that began at a time and did something.
func (w *Window) Succeeded(began, now time.Time) {
	w.FoundUp(now)
	if began.After(w.good) {
		w.good = began
	}
}

// Turn begins another term: failures of the last are forgotten.
func (w *Window) Turn(term int64) {
	if term != w.term {
		w.term, w.buckets, w.grain, w.down = term, w.buckets[:0], 0, span{}
	}
}

// Total is how many failures there were in all.
func (w *Window) Total() int64 { return w.total }

// GoOn counts on from a number that was reached before. No instance reaches maxTotal by counting:
// who wrote more must not make it write a record that nobody can read.
func (w *Window) GoOn(total int64) { w.total = max(w.total, min(total, maxTotal)) }

// coarsen makes one bucket of each two. It is as old as its newest failure: what is counted too
// long is counted for less than a grain more, and that is a sixtieth of the window at most.
func (w *Window) coarsen() {
	kept := w.buckets[:0]
	for i := 0; i < len(w.buckets); i += 2 {
		b := w.buckets[i]
		if i+1 < len(w.buckets) {
			b.last, b.n = w.buckets[i+1].last, plus(b.n, w.buckets[i+1].n)
		}
		kept = append(kept, b)
	}
	w.buckets, w.grain = kept, w.grain*2
}

// Tally is what is shared of it: only what is younger than within. What is older is forgotten.
func (w *Window) Tally(within time.Duration, now time.Time) Tally {
	w.forget(within, now)
	t := Tally{Term: w.term, Total: w.total}
	if w.isDown(now) {
		t.Down = max(w.down.last.Sub(w.down.first), 1)
	}
	if age := now.Sub(w.up); age < within && !w.up.IsZero() {
		t.Up = max(age, 1)
	}
	if !w.good.IsZero() {
		t.Good = max(now.Sub(w.good), 1)
	}
	if len(w.buckets) == 0 {
		return t
	}
	t.Buckets = make([]Bucket, len(w.buckets))
	for i, b := range w.buckets {
		t.Buckets[i] = Bucket{Age: max(now.Sub(b.last), 0), Count: b.n}
	}
	return t
}

func (w *Window) forget(within time.Duration, now time.Time) {
	old := 0
	for old < len(w.buckets) && now.Sub(w.buckets[old].last) >= within {
		old++
	}
	w.buckets = append(w.buckets[:0], w.buckets[old:]...)
	if len(w.buckets) == 0 {
		w.grain = 0
	}
}

// Seen is another's tally and when it was first seen in this form, on the observer's clock.
type Seen struct {
	Tally Tally
	At    time.Time
}

// Sum counts all failures of a term that are younger than within: each bucket's age when it was
// written plus how long ago it was seen. Clocks of machines are never compared. The time between
// writing and seeing is not known, so that a failure may be counted for that much longer than
// within, never shorter.
func Sum(term int64, within time.Duration, own Tally, others []Seen, now time.Time) int {
	n := own.younger(term, within, 0)
	for _, o := range others {
		n = plus(n, o.Tally.younger(term, within, max(now.Sub(o.At), 0)))
	}
	return n
}

// AllDown tells whether an instance's calls of a term have found for a whole window that what the
// function needs is down, and no other instance's found otherwise in that time: a machine that
// cannot reach it while others can stops nobody else.
func AllDown(term int64, within time.Duration, own Tally, others []Seen, now time.Time) bool {
	if own.Term != term || own.Down < within {
		return false
	}
	for _, o := range others {
		if o.Tally.Up > 0 && o.Tally.Up < within-max(now.Sub(o.At), 0) {
			return false
		}
	}
	return true
}

// NewestDown is when, on the observer's clock, another instance was last seen whose calls of a term
// had found to the last that what the function needs is down; zero: none was within.
func NewestDown(term int64, within time.Duration, others []Seen, now time.Time) (at time.Time) {
	for _, o := range others {
		if o.Tally.Down > 0 && o.Tally.Term == term && now.Sub(o.At) < within && o.At.After(at) {
			at = o.At
		}
	}
	return at
}

// younger counts the failures of a term that are younger than within when the tally is so old.
func (t Tally) younger(term int64, within, old time.Duration) int {
	if t.Term != term {
		return 0
	}
	n := 0
	for _, b := range t.Buckets {
		if b.Age < within-old {
			n = plus(n, b.Count)
		}
	}
	return n
}

// Count is the failures that were in it when it was written.
func (t Tally) Count() int {
	n := 0
	for _, b := range t.Buckets {
		n = plus(n, b.Count)
	}
	return n
}

// plus adds counts, neither of them negative, up to maxCount.
func plus(a, b int) int { return min(min(a, maxCount)+min(b, maxCount), maxCount) }
