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
// holds, and nobody has to know the size of what comes before it is there. All that is kept is when
// the bucket would be full again (GCRA, as telephone networks call it).
type Bucket struct {
	mu   sync.Mutex
	rate Rate      // guarded by mu
	full time.Time // guarded by mu
}

// New makes a full bucket.
func New(rate Rate) *Bucket { return &Bucket{rate: rate} }

// Set changes the rate; what was taken stays taken.
func (b *Bucket) Set(rate Rate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rate = rate
}

// Wait is how long it takes until something can be had; zero: now.
func (b *Bucket) Wait(now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waitLocked(now)
}

// Take takes n if there is anything, else nothing, and says how long to wait; zero: it has.
func (b *Bucket) Take(n float64, now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.waitLocked(now)
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

// IsFull reports whether the bucket is as a new one would be.
func (b *Bucket) IsFull(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.full.After(now)
}

// waitLocked is never more than an hour: nobody is told to come
// back next year for one absurd batch, nor by a clock that was set back.
func (b *Bucket) waitLocked(now time.Time) time.Duration {
	if b.rate.PerSecond <= 0 || !b.full.After(now) {
		return 0
	}
	missing := b.full.Sub(now) - b.takes(b.rate.Burst) + rounding
	if missing <= 0 {
		return 0
	}
	return min(missing, time.Hour)
}

// rounding is what many small sums of times may be wrong by.
const rounding = time.Microsecond

func (b *Bucket) chargeLocked(n float64, now time.Time) {
	if b.rate.PerSecond <= 0 || n <= 0 {
		return
	}
	if b.full.Before(now) {
		b.full = now
	}
	if most := now.Add(b.takes(b.rate.Burst) + time.Hour); b.full.Add(b.takes(n)).Before(most) {
		b.full = b.full.Add(b.takes(n))
	} else {
		b.full = most
	}
}

// takes is how long it takes to make up for n.
func (b *Bucket) takes(n float64) time.Duration {
	return time.Duration(min(n/b.rate.PerSecond, math.MaxInt32) * float64(time.Second))
}
