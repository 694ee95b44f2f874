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
func (b *batch) store(items []*item, doing string, put func([]pending.Parcel) error) (tooLarge []*item) {
	for len(items) > 0 {
		n := storable(items)
		parcels := parcelsOf(items[:n])
		err := b.insist(doing, parcels, put)
		switch {
		case err == nil:
			for i, it := range items[:n] {
				it.Due = parcels[i].Due
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
func (b *batch) insist(doing string, parcels []pending.Parcel, put func([]pending.Parcel) error) error {
	l := b.lane
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		err := put(parcels)
		if err == nil || l.isGone() {
			return nil
		}
		if b.shift.taking.Err() != nil || errors.Is(err, eventlog.ErrTooLarge) {
			return err
		}
		l.s.log.Warn("cannot "+doing+", trying again", "subscription", b.terms.sub.Name,
			"events", len(parcels), "after", wait, "error", err)
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
		bytes += it.Parcel.Bytes()
		if i == storeEvents || i > 0 && bytes > storeBytes {
			return i
		}
	}
	return len(items)
}

func parcelsOf(items []*item) []pending.Parcel {
	parcels := make([]pending.Parcel, len(items))
	for i, it := range items {
		parcels[i] = it.Parcel
	}
	return parcels
}

// keepGrace is how long storing may take after requests have ended, when the yard stops.
const keepGrace = 5 * time.Second

// storableParcels is storable for parcels that are not in a lane.
func storableParcels(parcels []pending.Parcel) int {
	bytes := 0
	for i := range parcels {
		bytes += parcels[i].Bytes()
		if i == storeEvents || i > 0 && bytes > storeBytes {
			return i
		}
	}
	return len(parcels)
}
