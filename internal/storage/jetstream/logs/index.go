package logs

import (
	"cmp"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

// spot is a frame that has counted.
type spot struct {
	seq    frames.StreamSeq
	first  eventlog.Sequence
	events int
	time   int64
	before int64 // frames.State.Bytes before it
}

func (s spot) next() eventlog.Sequence { return s.first + eventlog.Sequence(s.events) }

// index is the newest frames of a partition that have counted, without a gap: where readers near the
// end find what they want, and what the fold of all messages says of it. It is pure.
type index struct{ spots []spot }

// add adds the next frame. Of more than most the older half is dropped.
func (x *index) add(s spot, most int) {
	if len(x.spots) >= most {
		x.spots = append(x.spots[:0], x.spots[len(x.spots)/2:]...)
	}
	x.spots = append(x.spots, s)
}

func (x *index) clear() { x.spots = nil }

// first gives the oldest frame; it is false if there is none.
func (x *index) first() (spot, bool) {
	if len(x.spots) == 0 {
		return spot{}, false
	}
	return x.spots[0], true
}

// find gives the frame that has the event.
func (x *index) find(number eventlog.Sequence) (spot, bool) {
	i, exact := slices.BinarySearchFunc(x.spots, number, func(s spot, n eventlog.Sequence) int { return cmp.Compare(s.first, n) })
	if !exact {
		i--
	}
	if i < 0 || x.spots[i].next() <= number {
		return spot{}, false
	}
	return x.spots[i], true
}

// where gives the first frame of which something holds that holds of all behind it, too. It is false
// if there is none, and also if it holds of the first: then it may hold of older ones. whole says
// that there are no older ones.
func (x *index) where(whole bool, holds func(spot) bool) (spot, bool) {
	i, _ := slices.BinarySearchFunc(x.spots, true, func(s spot, _ bool) int {
		if holds(s) {
			return 0
		}
		return -1
	})
	if i == len(x.spots) || i == 0 && !whole {
		return spot{}, false
	}
	return x.spots[i], true
}
