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
		n := storable(items)
		deliveries := deliveriesOf(items[:n])
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

func (l *lane) isGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// storable is how many of the first items go into one batch.
func storable(items []*item) int {
	bytes := 0
	for i, it := range items {
		bytes += it.Delivery.Bytes()
		if i == storeEvents || i > 0 && bytes > storeBytes {
			return i
		}
	}
	return len(items)
}

func deliveriesOf(items []*item) []pending.Delivery {
	deliveries := make([]pending.Delivery, len(items))
	for i, it := range items {
		deliveries[i] = it.Delivery
	}
	return deliveries
}

// keepGrace is how long storing may take after requests have ended, when the yard stops.
const keepGrace = 5 * time.Second

// storableDeliveries is storable for pending deliveries that are not in a lane.
func storableDeliveries(deliveries []pending.Delivery) int {
	bytes := 0
	for i := range deliveries {
		bytes += deliveries[i].Bytes()
		if i == storeEvents || i > 0 && bytes > storeBytes {
			return i
		}
	}
	return len(deliveries)
}
