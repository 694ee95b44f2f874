package shards

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// C2: a write under an epoch replaces those of lower ones and its own, and never a later holder's.
func TestWhoMayWriteOverWhat(t *testing.T) {
	for name, c := range map[string]struct {
		own, found Epoch
		lost       bool
	}{
		"one machine, its own write whose answer was lost":    {0, 0, false},
		"one machine finds what several nodes wrote":          {0, 1, true},
		"the first of several nodes, a value without epoch":   {1, 0, false},
		"a node's own write whose answer was lost":            {7, 7, false},
		"a late write of the holder before":                   {7, 6, false},
		"a late write of a holder long ago":                   {7, 2, false},
		"the next holder has begun":                           {7, 8, true},
		"the shard has moved on several times":                {7, 70, true},
		"the largest number is an epoch like any other":       {1<<63 - 1, 1<<63 - 1, false},
		"and it is higher than what is one below the largest": {1<<63 - 2, 1<<63 - 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, errors.Is(c.own.Over(c.found), ErrLost), c.lost)
		})
	}
}

// C2: of two epochs at least one gives way to the other, and of two different ones exactly one.
func TestOfTwoHoldersOneGivesWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epoch := rapid.Int64Range(0, 5)
		a, b := Epoch(epoch.Draw(t, "a")), Epoch(epoch.Draw(t, "b"))
		if over, under := a.Over(b) == nil, b.Over(a) == nil; over && under != (a == b) || !over && !under {
			t.Fatalf("epoch %d over %d: %v, the other way round: %v", a, b, over, under)
		}
	})
}

// What is stored is found by these numbers: they are those of the books of parked logs, which are
// older than shards.
func TestShardsNeverChange(t *testing.T) {
	for id, want := range map[string]int{"": 5, "a": 44, "subscription": 20, "0123456789abcdef": 61} {
		testkit.Equal(t, Of(id), want, "the shard of %q", id)
	}
	all := make(map[int]bool)
	for i := range 2000 {
		all[Of(fmt.Sprint("id-", i))] = true
	}
	testkit.Equal(t, len(all), Count, "shards in use")
	testkit.Equal(t, Held{Shard: 63}.Name(), "3f")
	testkit.Equal(t, Held{}.Name(), "00")
}
