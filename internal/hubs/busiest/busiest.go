// Package busiest finds the keys that most events have, in memory that does not grow with the number of
// keys: by the space-saving sketch of Metwally, Agrawal and El Abbadi.
//
// A sketch has a few counters. A key that has one counts up. One that has none takes over the lowest, and
// counts on from there, as if the events of all keys before it had been its own: so much is its excess.
// Therefore, of n events with a key,
//
//   - no key has had more events than its counter says, nor fewer than that without the excess;
//   - no excess is above n/Counters, as the lowest of all counters is not;
//   - a key of more than n/Counters events has a counter.
package busiest

import (
	"bytes"
	"cmp"
	"slices"
)

// Counters is how many keys a sketch counts at a time.
const Counters = 16

// Sketch counts the keys of a stream of events. The zero one has counted nothing. It has no lock: its owner
// does.
type Sketch struct {
	events, keyed int64
	counters      []counter
}

type counter struct {
	key           []byte
	count, excess int64
}

// Add counts an event, whose key may be empty: it has none then. The bytes may be used again when it
// returns. Once all counters are taken it allocates only for a key that is longer than those before it.
func (s *Sketch) Add(key []byte) {
	s.events++
	if len(key) == 0 {
		return
	}
	s.keyed++
	lowest := 0
	for i := range s.counters {
		c := &s.counters[i]
		if bytes.Equal(c.key, key) {
			c.count++
			return
		}
		if c.count < s.counters[lowest].count {
			lowest = i
		}
	}
	if free := len(s.counters); free < Counters {
		s.counters = slices.Grow(s.counters, Counters-free)[:free+1]
		s.counters[free].count, lowest = 0, free
	}
	c := &s.counters[lowest]
	c.key, c.excess = append(c.key[:0], key...), c.count
	c.count++
}

// Reset forgets all, and keeps the memory.
func (s *Sketch) Reset() { s.events, s.keyed, s.counters = 0, 0, s.counters[:0] }

// Tally is what a sketch has counted, or several.
type Tally struct {
	// Events are all, Keyed those that have a key.
	Events int64 `json:"events"`
	Keyed  int64 `json:"keyed"`
	// Keys are the busiest, the busiest first.
	Keys []Key `json:"keys"`
	// Rest is how many events a key may have had at most that is not among them.
	Rest int64 `json:"rest"`
}

// Key is one of a tally. It has had Count events at most, and Count-Excess at least.
type Key struct {
	Key    string `json:"key"`
	Count  int64  `json:"count"`
	Excess int64  `json:"excess"`
}

// Tally tells what was counted.
func (s *Sketch) Tally() Tally {
	t := Tally{Events: s.events, Keyed: s.keyed}
	for _, c := range s.counters {
		t.Keys = append(t.Keys, Key{string(c.key), c.count, c.excess})
	}
	t.sort()
	if len(t.Keys) == Counters {
		t.Rest = t.Keys[Counters-1].Count
	}
	return t
}

func (t *Tally) sort() {
	slices.SortFunc(t.Keys, func(a, b Key) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key)) })
}

// Cut leaves so many keys; those that go are among the rest.
func (t Tally) Cut(most int) Tally {
	if len(t.Keys) > most {
		t.Rest = max(t.Rest, t.Keys[most].Count)
		t.Keys = t.Keys[:most]
	}
	return t
}

// Sum adds up tallies of different events. A key that is not among those of one may have had as many events
// there as its rest, which adds to its excess. Of whole sketches a key of more than n/Counters events of all n
// is still there: were sixteen others before it, their counts would come to more than was counted.
func Sum(parts ...Tally) (sum Tally) {
	keys := map[string]*Key{}
	for _, p := range parts {
		sum.Events, sum.Keyed, sum.Rest = sum.Events+p.Events, sum.Keyed+p.Keyed, sum.Rest+p.Rest
		for _, k := range p.Keys {
			if keys[k.Key] == nil {
				keys[k.Key] = &Key{Key: k.Key}
			}
			// Every rest is added below, and this one does not count.
			keys[k.Key].Count += k.Count - p.Rest
			keys[k.Key].Excess += k.Excess - p.Rest
		}
	}
	for _, k := range keys {
		sum.Keys = append(sum.Keys, Key{k.Key, k.Count + sum.Rest, k.Excess + sum.Rest})
	}
	sum.sort()
	return sum.Cut(Counters)
}
