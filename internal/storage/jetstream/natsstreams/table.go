package natsstreams

import (
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// table is the messages that wait, first to be handed over and then for their answer, in the order
// in which they were published, and so in that of their deadlines. It is pure; its owner locks it.
//
//	first ... settled or waiting for an answer ... next ... to be handed over ... end
type table struct {
	ring             []waiting // its length is a power of two; number n is at n modulo that
	first, next, end uint64    // numbers; first <= next <= end
}

// waiting is one message. It is settled when done is nil.
type waiting struct {
	subject  string
	data     []byte
	deadline time.Time
	done     func(streams.Seq, error)
}

// maxWaiting bounds the table. Who publishes has windows that are far smaller.
const maxWaiting = 1 << 16

// add puts a message at the end; false: there is no room.
func (t *table) add(w waiting) bool {
	size := t.end - t.first
	if size == maxWaiting {
		return false
	}
	if size == uint64(len(t.ring)) {
		t.grow()
	}
	*t.at(t.end) = w
	t.end++
	return true
}

func (t *table) at(number uint64) *waiting { return &t.ring[number&uint64(len(t.ring)-1)] }

func (t *table) grow() {
	larger := table{ring: make([]waiting, max(64, 2*len(t.ring)))}
	for n := t.first; n < t.end; n++ {
		*larger.at(n) = *t.at(n)
	}
	t.ring = larger.ring
}

// take gives the next message to be handed over. From now on its fate is open until it is settled.
func (t *table) take() (number uint64, w waiting, ok bool) {
	for t.next < t.end {
		number = t.next
		slot := t.at(number)
		t.next++
		if slot.done != nil {
			w = *slot
			slot.data, slot.subject = nil, "" // the client library has its own copy
			return number, w, true
		}
	}
	return 0, waiting{}, false
}

// settle gives whom to tell of a message's fate; nil if that was done, or there is no such message.
func (t *table) settle(number uint64) func(streams.Seq, error) {
	if number < t.first || number >= t.end {
		return nil
	}
	slot := t.at(number)
	done := slot.done
	*slot = waiting{}
	for t.first < t.end && t.at(t.first).done == nil {
		t.first++
	}
	t.next = max(t.next, t.first)
	return done
}

// expire settles the oldest message if its deadline has passed. handedOver: nobody knows its fate.
func (t *table) expire(now time.Time) (done func(streams.Seq, error), handedOver bool) {
	if t.first == t.end || t.at(t.first).deadline.After(now) {
		return nil, false
	}
	return t.oldest()
}

// oldest settles the oldest message.
func (t *table) oldest() (done func(streams.Seq, error), handedOver bool) {
	if t.first == t.end {
		return nil, false
	}
	handedOver = t.first < t.next
	return t.settle(t.first), handedOver
}

// deadline is that of the oldest message; false: none waits.
func (t *table) deadline() (time.Time, bool) {
	if t.first == t.end {
		return time.Time{}, false
	}
	return t.at(t.first).deadline, true
}
