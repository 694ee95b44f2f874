package delivery

import (
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// What is stored at a time: well within what a log takes as one batch. One that is larger by
// itself is stored alone.
const (
	storeEvents = 1_000
	storeBytes  = 1 << 20
)

// store puts items somewhere durable and finishes those that are there. It gives back those that
// are not, of which each is too large to be stored at all.
//
// While storage refuses for another reason (it is full, say) the items are kept and tried
// again: the worker waits, and so does the lane once all its workers do. When the yard stops
// they are simply not finished, and come again.
func (b *batch) store(items []*item, doing string, put func([]pending.Delivery) error) (tooLarge []*item) {
	for len(items) > 0 {
		n, deliveries := storableItems(items)
		err := b.insist(doing, deliveries, put)
		switch {
		case err == nil:
			for i, it := range items[:n] {
				it.Due = deliveries[i].Due
			}
			b.finish(items[:n]...)
		case errors.Is(err, eventlog.ErrTooLarge):
			tooLarge = append(tooLarge, items[:n]...)
		default:
			return tooLarge
		}
		items = items[n:]
	}
	return tooLarge
}

// insist tries until it succeeds, and gives up only when that would never be, or when nothing
// depends on it: the yard stops, or the subscription was deleted, so that the events are
// nobody's.
func (b *batch) insist(doing string, deliveries []pending.Delivery, put func([]pending.Delivery) error) error {
	l := b.lane
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		err := put(deliveries)
		if err == nil || l.isGone() {
			return nil
		}
		if b.shift.taking.Err() != nil || errors.Is(err, eventlog.ErrTooLarge) {
			return err
		}
		l.s.log.Warn("cannot "+doing+", trying again", "subscription", b.terms.sub.Name,
			"events", len(deliveries), "after", wait, "error", err)
		pause(b.shift.taking, wait)
	}
}

// storable is how many of the first n go into one batch, by what each measures.
func storable(n int, bytes func(i int) int) int {
	sum := 0
	for i := range n {
		sum += bytes(i)
		if i == storeEvents || i > 0 && sum > storeBytes {
			return i
		}
	}
	return n
}

// storableItems is storable for items, whose deliveries it gives as well.
func storableItems(items []*item) (int, []pending.Delivery) {
	n := storable(len(items), func(i int) int { return items[i].Delivery.Bytes() })
	deliveries := make([]pending.Delivery, n)
	for i, it := range items[:n] {
		deliveries[i] = it.Delivery
	}
	return n, deliveries
}

// keepGrace is how long storing may take after requests have ended, when the yard stops.
const keepGrace = 5 * time.Second
