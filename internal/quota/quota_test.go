package quota

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// R4: a bucket gives its burst, then its rate, and is full again after a rest.
func TestABucketGivesItsBurstAndThenItsRate(t *testing.T) {
	b, now := New(Rate{PerSecond: 10, Burst: 5}), start
	for i := range 5 {
		testkit.Equal(t, b.Take(1, now), 0, "wait for %d of the burst", i)
	}
	wait := b.Take(1, now)
	testkit.That(t, wait > 0 && wait <= 101*time.Millisecond, "the wait is %v", wait)
	testkit.Equal(t, b.Take(1, now.Add(wait)), 0, "wait after the wait")
	testkit.That(t, b.IsFull(now.Add(time.Second)), "it is not full after a rest")
}

// R4: what is larger than the burst passes, and is made up for.
func TestABatchLargerThanTheBurst(t *testing.T) {
	b := New(Rate{PerSecond: 100, Burst: 10})
	testkit.Equal(t, b.Take(1000, start), 0, "wait for the batch")
	testkit.Equal(t, b.Wait(start.Add(9*time.Second)) > 0, true, "refused while it owes")
	testkit.Equal(t, b.Take(1000, start.Add(10*time.Second)), 0, "wait for the next batch")
}

func TestNoLimit(t *testing.T) {
	var none *Bucket
	for _, b := range []*Bucket{none, New(Rate{})} {
		for range 3 {
			testkit.Equal(t, b.Take(1e18, start), 0, "wait")
		}
	}
}

// Neither absurd demands nor a clock that was set back shut anybody out of a bucket for longer than an
// hour.
func TestTheLongestWait(t *testing.T) {
	b := New(Rate{PerSecond: 1, Burst: 1})
	b.Charge(1e300, start)
	testkit.That(t, b.Wait(start) <= time.Hour, "the wait is %v", b.Wait(start))
	testkit.That(t, b.Wait(start.Add(-1000*time.Hour)) <= time.Hour, "the wait is %v", b.Wait(start.Add(-1000*time.Hour)))
	testkit.Equal(t, b.Take(1e300, start.Add(time.Hour+time.Second)), 0, "wait after an hour")
	testkit.Equal(t, b.Wait(start.Add(2*time.Hour+2*time.Second)), 0, "wait after another")
}

// R4: over any stretch no more than the burst, the rate and one batch are given, whoever asks.
func TestTheAverageHolds(t *testing.T) {
	b, now, given := New(Rate{PerSecond: 1000, Burst: 500}), start, 0.0
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		n := float64(random.IntN(50))
		if b.Take(n, now) == 0 {
			given += n
		}
		now = now.Add(time.Duration(random.IntN(20)) * time.Millisecond / 10)
	}
	seconds := now.Sub(start).Seconds()
	testkit.That(t, given <= 1000*seconds+500+50, "%v were given in %v s", given, seconds)
	testkit.That(t, given >= 990*seconds, "%v were given in %v s", given, seconds)
}

func TestManyAtOnce(t *testing.T) {
	b := New(Rate{PerSecond: 1, Burst: 100})
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 8 {
		all.Go(func() {
			for range 50 {
				if b.Take(1, start) == 0 {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	testkit.Equal(t, taken, 100, "taken")
}
