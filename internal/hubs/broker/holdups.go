package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Holdup is what readers wait for: a frame of a transaction that is not decided. Whoever coordinates transactions looks
// now and then whether they are decided one day. After a restore, or a loss of power where syncing is left to the
// operating system, there may be frames in a log of whose transaction nobody knows any more, and nobody would end it.
type Holdup struct {
	Log       string
	Partition int
	Frame     eventlog.Extent
}

// maxHoldups is how many are remembered. Readers behind others wait all the same.
const maxHoldups = 1 << 14

// holdups are those that readers have met. The zero value works.
type holdups struct {
	mu sync.Mutex
	// all are by partition and producer, with the time since when they are known; guarded by mu.
	all map[holdupKey]knownHoldup
}

type holdupKey struct {
	log       string
	partition int
	producer  int64
}

type knownHoldup struct {
	Holdup
	since time.Time
}

func (h Holdup) key() holdupKey { return holdupKey{h.Log, h.Partition, h.Frame.Producer.ID} }

func (hs *holdups) note(h Holdup) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	known, there := hs.all[h.key()]
	switch {
	case there && known.Frame.First <= h.Frame.First, !there && len(hs.all) >= maxHoldups:
		return
	case hs.all == nil:
		hs.all = make(map[holdupKey]knownHoldup)
	}
	hs.all[h.key()] = knownHoldup{h, time.Now()}
}

// drop forgets one, unless another frame has taken its place.
func (hs *holdups) drop(h Holdup) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all[h.key()].Frame.First == h.Frame.First {
		delete(hs.all, h.key())
	}
}

// Holdups gives what readers wait for, and have for so long: without what was decided meanwhile, which it forgets. What
// cannot be looked at is left to the next time, and err says why; of the others it tells all the same.
func (f *Frames) Holdups(ctx context.Context, age time.Duration) (waiting []Holdup, err error) {
	f.holdups.mu.Lock()
	var old []Holdup
	for _, h := range f.holdups.all {
		if time.Since(h.since) >= age {
			old = append(old, h.Holdup)
		}
	}
	f.holdups.mu.Unlock()
	for _, h := range old {
		hub := f.broker.hubs.byLog()[h.Log]
		fate := Counts // of a hub that is gone nobody waits
		if hub != nil && hub.broken == nil {
			var failed error
			if fate, failed = judgeOne(ctx, hub, h); failed != nil {
				err = errors.Join(err, fmt.Errorf("look for the end of a transaction in %s/%d: %w", hub.Name, h.Partition, failed))
				continue
			}
		}
		if fate != Undecided {
			f.holdups.drop(h)
		} else {
			waiting = append(waiting, h)
		}
	}
	return waiting, err
}

// judgeTimeout bounds a look at one holdup.
const judgeTimeout = 5 * time.Second

func judgeOne(ctx context.Context, h *hub, waits Holdup) (Fate, error) {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	return newFates(h.partitions[waits.Partition].Cursor).Judge(ctx, waits.Frame)
}

// noting has fates note what is not decided in a partition.
func (f *Frames) noting(h *hub, partition int, fates *Fates) *Fates {
	fates.note = func(e eventlog.Extent) {
		h.transacted(partition, e.First-eventlog.Sequence(e.Skip))
		f.holdups.note(Holdup{h.log, partition, e})
	}
	return fates
}
