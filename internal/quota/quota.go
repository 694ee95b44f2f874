// Package quota bounds how much happens in a time: token buckets, and tables of them by name. It is
// pure: who uses it passes the time.
package quota

import (
	"math"
	"sync"
	"time"
)

// Rate is how much a bucket gives: so much a second on average, and Burst at once after a rest. A
// Rate of nothing a second is no limit at all.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// Bucket is one token bucket, for many goroutines at once.
//
// What is taken may be more than there is, as long as there is anything: then the bucket owes, and
// gives nothing until that is made up for. So a batch larger than the burst passes, the average
// holds, and nobody has to know the size of what comes before it is there. A Bucket is for the pace of
// what comes one by one, and is charged also when it is empty: it owes no more than maxWait.
type Bucket struct {
	mu    sync.Mutex
	level level // guarded by mu
}

// New makes a full bucket.
func New(rate Rate) *Bucket { return &Bucket{level: level{rate: rate}} }

// Wait is how long it takes until something can be had; zero: now.
func (b *Bucket) Wait(now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.level.wait(now)
}

// Take takes n if there is anything, else nothing, and says how long to wait; zero: it has.
func (b *Bucket) Take(n float64, now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.level.wait(now)
	if wait == 0 {
		b.chargeLocked(n, now)
	}
	return wait
}

// Charge takes n, whatever there is.
func (b *Bucket) Charge(n float64, now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chargeLocked(n, now)
}

func (b *Bucket) chargeLocked(n float64, now time.Time) {
	b.level.charge(n, now)
	if most := now.Add(b.level.takes(b.level.rate.Burst) + maxWait); b.level.full.After(most) {
		b.level.full = most
	}
}

// IsFull reports whether the bucket is as a new one would be.
func (b *Bucket) IsFull(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.level.full.After(now)
}

// level is what a bucket holds. All that is kept is when it would be full again (GCRA, as telephone
// networks call it).
type level struct {
	rate Rate
	full time.Time
}

// set changes the rate. Who kept to the old one owes nothing under the new one: the part of the burst
// that was used stays that part, or what it was where the burst grows. What was owed beyond the burst
// is, and is made up for at the new rate.
func (l *level) set(rate Rate, now time.Time) {
	old, used := l.rate, l.full.Sub(now).Seconds()*l.rate.PerSecond
	l.rate, l.full = rate, now
	if used <= 0 || old.PerSecond <= 0 {
		return
	}
	within := min(used, old.Burst)
	if rate.Burst < old.Burst {
		within *= rate.Burst / old.Burst
	}
	l.charge(within+max(used-old.Burst, 0), now)
}

// maxWait is how long anybody is told to wait: nobody comes back next year, and the limit may be
// another by then. Who comes back earlier than a debt is made up for is told once more.
const maxWait = time.Hour

func (l *level) wait(now time.Time) time.Duration {
	if l.rate.PerSecond <= 0 || !l.full.After(now) {
		return 0
	}
	missing := l.full.Sub(now) - l.takes(l.rate.Burst) + rounding
	if missing <= 0 {
		return 0
	}
	return min(missing, maxWait)
}

// rounding is what many small sums of times may be wrong by.
const rounding = time.Microsecond

// charge takes n, or gives back what is less than zero.
func (l *level) charge(n float64, now time.Time) {
	if l.rate.PerSecond <= 0 {
		return
	}
	if l.full.Before(now) {
		l.full = now
	}
	l.full = l.full.Add(l.takes(n))
	if most := now.Add(maxSum); l.full.After(most) {
		l.full = most
	}
}

// maxSum is as far ahead as times can be reckoned with without care.
const maxSum = math.MaxInt32 * time.Second

// takes is how long it takes to make up for n.
func (l *level) takes(n float64) time.Duration {
	return time.Duration(min(n/l.rate.PerSecond, maxSum.Seconds()) * float64(time.Second))
}
