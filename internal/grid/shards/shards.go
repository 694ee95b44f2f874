// Package shards divides the grid's work among the nodes of a yard. A subscription belongs to one of
// 64 shards for ever, a shard is held by one node at a time, and whatever is stored of a shard
// carries the epoch of its holder. It is pure: who holds what is decided elsewhere.
//
// A node that was frozen may believe for a moment that it holds a shard which another has taken
// over. Both may send the same events then, but only one of them moves cursors: the new holder
// writes each stored value once, under its own epoch, before it relies on it. The old one's next
// write meets a revision that it does not know, finds a higher epoch there, and stops. So a shard
// that moves may repeat events, and never passes one over.
//
// A yard on one machine holds all shards for ever, under epoch 0, which is not stored: its values are
// what they were before there were shards.
package shards

import (
	"errors"
	"fmt"
	"hash/fnv"
)

// Count is how many shards there are. It must never change: what is stored is found by it.
const Count = 64

// ErrLost: another node holds the shard, or held it later. Whoever gets it writes nothing more for
// the shard, and tries nothing again.
var ErrLost = errors.New("another node holds the shard")

// ErrElsewhere: this node does not hold the shard of the subscription that it was asked about. Who
// holds it can answer; nobody may for the moment in which a shard moves.
var ErrElsewhere = errors.New("the subscription is delivered by another node")

// Of gives the shard of a subscription, from 0 up to before Count. It must never change.
func Of(subscription string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(subscription)) // it never fails
	return int(hash.Sum32() % Count)
}

// Epoch rises with each holder of a shard. 0 is that of a yard on one machine, and of values that
// were stored before there were epochs.
type Epoch int64

// Over says whether the holder under epoch e may write over a value that it did not expect, which
// was stored under epoch found. Nil: it may, and tries again with the revision that it found. A value
// of its own epoch is an earlier write of its own, whose answer was lost; one of a lower epoch is a
// late write of a node that held the shard before. ErrLost: the value is a later holder's.
func (e Epoch) Over(found Epoch) error {
	if found > e {
		return fmt.Errorf("%w: under epoch %d, this node has %d", ErrLost, found, e)
	}
	return nil
}

// Held is a shard as its holder knows it.
type Held struct {
	Shard int
	Epoch Epoch
}

// Name is the shard's in keys and logs: two hexadecimal digits.
func (h Held) Name() string { return fmt.Sprintf("%02x", h.Shard) }
