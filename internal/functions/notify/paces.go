package notify

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/quota"
)

// How many notices a target gets, and all targets together, however many circuits there are: so
// many at once, then so many a minute. What has to wait is sent later.
var (
	targetPace = quota.Rate{PerSecond: 1.0 / 60, Burst: 30}
	totalPace  = quota.Rate{PerSecond: 10.0 / 60, Burst: 150}
)

// ownShare is how many times that the functions of the yard have: hundreds may fail at once that
// need the same thing.
const ownShare = 10

// paces holds the pace by target and in all. The name of a circuit is no measure: a program of a
// client keeps its circuits in the yard, too, under names of its own choice. Nor do these hold up
// notices of functions that the yard itself runs, which only operators define and which have a
// pace of their own. It is this node's, and begins anew when the yard does.
type paces struct {
	mu      sync.Mutex
	buckets map[paceID]*quota.Bucket // guarded by mu; of targets that were told something of late

	// waiting bounds how often it is logged that notices wait.
	waiting rate.Sometimes
}

// paceID is a target, or all of them for "", and whose circuits.
type paceID struct {
	own    bool
	target string
}

func newPaces() *paces {
	return &paces{buckets: map[paceID]*quota.Bucket{}, waiting: rate.Sometimes{Interval: 10 * time.Minute}}
}

// take says how long a target has to wait for a notice; zero: it may be sent now.
func (p *paces) take(own bool, target string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.buckets, func(_ paceID, b *quota.Bucket) bool { return b.IsFull(now) })
	one, all := p.bucketLocked(paceID{own, target}, targetPace), p.bucketLocked(paceID{own: own}, totalPace)
	wait := max(one.Wait(now), all.Wait(now))
	if wait == 0 {
		one.Charge(1, now)
		all.Charge(1, now)
	}
	return wait
}

func (p *paces) bucketLocked(id paceID, rate quota.Rate) *quota.Bucket {
	b := p.buckets[id]
	if b == nil {
		if id.own {
			rate.PerSecond, rate.Burst = ownShare*rate.PerSecond, ownShare*rate.Burst
		}
		b = quota.New(rate)
		p.buckets[id] = b
	}
	return b
}
