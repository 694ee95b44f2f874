package broker

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/busiest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// keysPatience is how long the keys of a partition are counted after somebody has asked for them.
	keysPatience = time.Minute
	// keysWindow is after how long counting begins anew, so that what is told is of now: of one window
	// at least, and of two at most.
	keysWindow = 5 * time.Minute
	// maxKeysCounted is of how many partitions keys are counted at once. One costs two sketches, of
	// about a kilobyte each, or nine where all keys are as long as they may be.
	maxKeysCounted = 2 * MaxPartitions
)

// keysGiven is how many keys a partition tells of where so many are asked for at once: all that it has, of
// up to 64, and the busiest alone of a thousand, so that it fits into one message to another node.
func keysGiven(partitions int) int { return min(max(MaxPartitions/partitions, 1), busiest.Counters) }

// keyWatch knows of which partitions keys are counted: of those that somebody has asked for lately. To
// publish costs a look at one pointer where nobody has.
type keyWatch struct {
	mu  sync.Mutex
	all map[*keyCount]struct{} // guarded by mu
}

// keyCount counts the keys of one partition.
type keyCount struct {
	// at is where who publishes finds it.
	at *atomic.Pointer[keyCount]

	mu    sync.Mutex
	until time.Time // guarded by mu, as all that follows
	// since is when before began to count, and turned when latest did.
	since, turned  time.Time
	before, latest busiest.Sketch
}

// KeyTally is what a node has counted of the keys of a partition since a time.
type KeyTally struct {
	Partition string    `json:"partition"`
	Since     time.Time `json:"since"`
	busiest.Tally
}

// Keys tells which keys the events have that this node has handed to storage, of some partitions of a hub
// and in their order. It has them counted from now on, for keysPatience after the last call: the first
// hears of nothing. It does no I/O. Errors: *NotFoundError, ErrTooManyKeysCounted.
func (c *Counters) Keys(hub string, partitions []string) ([]KeyTally, error) {
	h, err := c.hubs.known(hub)
	if err != nil {
		return nil, err
	}
	numbers := make([]int, len(partitions))
	for i, id := range partitions {
		if numbers[i], err = h.partitionNumber(id); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	counts, err := c.keys.watch(h, numbers, now)
	if err != nil {
		return nil, fmt.Errorf("count the keys of hub %s: %w", h.Name, err)
	}
	given := make([]KeyTally, len(counts))
	for i, count := range counts {
		given[i] = count.tally(strconv.Itoa(numbers[i]), keysGiven(len(numbers)), now)
	}
	return given, nil
}

// countKeys counts what was handed to storage, if somebody wants to know. Frames are left out: what Kafka
// calls a key is inside them, often packed, and is not what chose the partition here.
func (c *Counters) countKeys(h *hub, partition int, events []eventlog.Event) {
	count := h.keys[partition].Load()
	if count == nil {
		return
	}
	if now := time.Now(); !count.add(events, now) {
		c.keys.end(count, now)
	}
}

// watch has the keys of partitions counted for a while from now on.
func (w *keyWatch) watch(h *hub, partitions []int, now time.Time) ([]*keyCount, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweepLocked(now)
	fresh := 0
	for _, n := range partitions {
		if h.keys[n].Load() == nil {
			fresh++
		}
	}
	if len(w.all)+fresh > maxKeysCounted {
		return nil, ErrTooManyKeysCounted
	}
	counts := make([]*keyCount, len(partitions))
	for i, n := range partitions {
		count := h.keys[n].Load()
		if count == nil {
			count = &keyCount{at: &h.keys[n], since: now, turned: now}
			w.all[count] = struct{}{}
		}
		count.prolong(now.Add(keysPatience))
		h.keys[n].Store(count)
		counts[i] = count
	}
	return counts, nil
}

// sweepLocked ends what nobody has asked for in time, of deleted hubs too.
func (w *keyWatch) sweepLocked(now time.Time) {
	for count := range w.all {
		w.endLocked(count, now)
	}
}

func (w *keyWatch) end(count *keyCount, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(count, now)
}

// endLocked ends a count, unless somebody has asked for it meanwhile.
func (w *keyWatch) endLocked(count *keyCount, now time.Time) {
	if count.over(now) {
		count.at.CompareAndSwap(count, nil)
		delete(w.all, count)
	}
}

func (c *keyCount) over(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.After(c.until)
}

func (c *keyCount) prolong(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
}

// add counts events, unless nobody wants to know any more.
func (c *keyCount) add(events []eventlog.Event, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.After(c.until) {
		return false
	}
	c.turnLocked(now)
	for i := range events {
		c.latest.Add(events[i].Key)
	}
	return true
}

// turnLocked begins a window when the one before is over, and forgets what is older than that.
func (c *keyCount) turnLocked(now time.Time) {
	lasted := now.Sub(c.turned)
	if lasted < keysWindow {
		return
	}
	c.before, c.latest = c.latest, c.before
	c.since, c.turned = c.turned, now
	c.latest.Reset()
	if lasted >= 2*keysWindow {
		c.before.Reset()
		c.since = now
	}
}

func (c *keyCount) tally(partition string, most int, now time.Time) KeyTally {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turnLocked(now)
	return KeyTally{partition, c.since, busiest.Sum(c.before.Tally(), c.latest.Tally()).Cut(most)}
}
