package runner

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/notify"
)

// CircuitHistory is what is known of a circuit's past.
type CircuitHistory struct {
	Circuit
	// Since is from when on this node has heard of changes; Changes are the newest, the oldest first.
	Since   time.Time
	Changes []breaker.Record
	// Seconds are the failures of the window by second, the oldest first: of a circuit that is not
	// closed, those up to its opening. Opening is how many of them each instance had.
	Seconds []FailuresAt
	Opening map[string]int
}

// FailuresAt is the failures of one second.
type FailuresAt struct {
	At    time.Time
	Count int
}

// CircuitHistory gives that of a circuit, found as ShowCircuit finds it. Changes are those that this
// node has heard of since it started; the failures are of the store.
func (k *circuits) CircuitHistory(ctx context.Context, hub, group, function string) (CircuitHistory, error) {
	c, err := k.ShowCircuit(ctx, hub, group, function)
	if err != nil {
		return CircuitHistory{}, err
	}
	h := CircuitHistory{Circuit: c}
	h.Since, h.Changes = k.changes.of(keyFor(c.group(), function))
	if len(h.Changes) == 0 && c.Record.Term > 0 {
		h.Changes = []breaker.Record{c.Record}
	}
	h.Seconds, h.Opening = bySecond(c.Record, c.Instances, time.Now())
	return h, nil
}

// bySecond dates the failures of all tallies. Those of a circuit that is not closed were written when
// it opened, or just before: their ages count from then. While it is closed they are at most some
// seconds old.
func bySecond(r breaker.Record, tallies map[string]breaker.Tally, now time.Time) ([]FailuresAt, map[string]int) {
	newest := int64(0)
	for _, t := range tallies {
		newest = max(newest, t.Term)
	}
	from := now
	if !r.Closed() && !r.Opened.IsZero() {
		from = r.Opened
	}
	counts, opening := map[int64]int{}, map[string]int{}
	for instance, t := range tallies {
		if t.Term != newest || r.Closed() && t.Term != r.Term {
			continue // of before it was closed last
		}
		for _, b := range t.Buckets {
			counts[from.Add(-b.Age).Unix()] += b.Count
			opening[instance] += b.Count
		}
	}
	all := make([]FailuresAt, 0, len(counts))
	for second, n := range counts {
		all = append(all, FailuresAt{time.Unix(second, 0).UTC(), n})
	}
	slices.SortFunc(all, func(a, b FailuresAt) int { return a.At.Compare(b.At) })
	return all, opening
}

// Bounds of what is remembered: changes of one circuit, and circuits.
const (
	maxChanges        = 100
	maxChangedCircuit = 10_000
)

// changes remembers how circuits have changed. Many goroutines may use it at once.
type changes struct {
	mu    sync.Mutex
	since time.Time                        // guarded by mu
	all   map[functionKey][]breaker.Record // the oldest first; guarded by mu
}

// add notes a circuit as it is now, unless that is known.
func (c *changes) add(one notify.Circuit, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.since, c.all = now, make(map[functionKey][]breaker.Record)
	}
	key := keyFor(one.Group, one.Function)
	known := c.all[key]
	if n := len(known); n > 0 && one.Record.Term <= known[n-1].Term || n == 0 && len(c.all) >= maxChangedCircuit {
		return
	}
	one.Record.Since = cmp.Or(one.Record.Since, now)
	one.Record.Samples, one.Record.Decided = nil, nil
	c.all[key] = append(known[max(0, len(known)-maxChanges+1):], one.Record)
}

func (c *changes) of(key functionKey) (since time.Time, all []breaker.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, slices.Clone(c.all[key])
}
