package retrylog

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
)

// maxBuckets bounds what is known of one subscription in one retry log. Where entries are of more
// different minutes, what was a minute becomes two, and so on.
const maxBuckets = 32

// counts are how many entries of each subscription wait in each retry log, and since when.
type counts struct {
	mu  sync.Mutex
	all map[countKey]*count // guarded by mu; none is zero
	// totals are by retry log; guarded by mu.
	totals map[int]int64
}

type countKey struct {
	subscription string
	position     int
}

// count is one subscription's in one retry log.
type count struct {
	entries int64
	// buckets are entries by the minute of publication, rising; a minute stands for 1<<coarse.
	buckets []bucket
	coarse  uint8
}

type bucket struct {
	minute int32
	n      int32
	// first is the earliest publication that was counted here, in milliseconds. Once that entry is
	// done it stays, so that the oldest may seem older than it is, by less than a bucket.
	first int64
}

func newCounts() *counts { return &counts{all: make(map[countKey]*count), totals: make(map[int]int64)} }

// add counts an entry, or by -1 no longer.
func (c *counts) add(p *pending.Delivery, position, n int) {
	key := countKey{p.Subscription, position}
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[key]
	if x == nil {
		x = &count{}
		key.subscription = strings.Clone(key.subscription) // not what it may be a part of
		c.all[key] = x
	}
	x.add(p.Published, n)
	c.totals[position] += int64(n)
	if x.entries == 0 {
		delete(c.all, key)
	}
}

// of gives how many wait, and when the oldest was published.
func (c *counts) of(subscription string, position int) (int64, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[countKey{subscription, position}]
	if x == nil || len(x.buckets) == 0 {
		return 0, time.Time{}
	}
	return x.entries, time.UnixMilli(x.buckets[0].first).UTC()
}

// total is how many wait in a retry log.
func (c *counts) total(position int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.totals[position]
}

func (x *count) add(published time.Time, n int) {
	x.entries += int64(n)
	minute := int32(published.Unix()/60) >> x.coarse
	i, found := slices.BinarySearchFunc(x.buckets, minute, func(b bucket, m int32) int { return cmp.Compare(b.minute, m) })
	if !found {
		x.buckets = slices.Insert(x.buckets, i, bucket{minute: minute, first: published.UnixMilli()})
	}
	x.buckets[i].n += int32(n)
	x.buckets[i].first = min(x.buckets[i].first, published.UnixMilli())
	if x.buckets[i].n == 0 {
		x.buckets = slices.Delete(x.buckets, i, i+1)
	}
	for len(x.buckets) > maxBuckets { // make them twice as wide
		x.coarse++
		kept := x.buckets[:0]
		for _, b := range x.buckets {
			b.minute >>= 1
			if last := len(kept) - 1; last >= 0 && kept[last].minute == b.minute {
				kept[last].n += b.n
				kept[last].first = min(kept[last].first, b.first)
			} else {
				kept = append(kept, b)
			}
		}
		x.buckets = kept
	}
}
