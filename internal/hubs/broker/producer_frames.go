package broker

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Producers of frames are Kafka's: nobody begins them before they send. A frame has all there is to
// know of its producer, and one that the partition does not know may begin with any number.
//
// So of several frames under way the second could pass for the first where the first was refused, for
// want of a quota or because storage was out of reach, and be stored before it. Kafka's brokers let that
// happen. Here the first number is what a producer begins with from when it was first heard of: in its
// account once it has begun, and until then in a list of what was refused.

// maxOwed bounds that list. Beyond it everything is forgotten, and it is as with Kafka's brokers.
const maxOwed = 1000

// beginFrames begins the epoch of a frame's producer. It is not written down: the frame will say so in
// the log, and until that is stored nobody was told of the epoch.
func (l *ledger) beginFrames(ctx context.Context, p eventlog.Producer, account string) error {
	_, err := l.begin(ctx, ProducerConfig{ID: &p.ID, Epoch: &p.Epoch, Last: new(p.First - 1), Account: account, frames: true})
	return err
}

// owe notes that a frame was refused which will come again, where its producer has not begun.
func (as *accounts) owe(b eventlog.Batch) {
	if b.Form == eventlog.FormEvents {
		return
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	p := b.Producer
	if a := as.byID[p.ID]; a != nil && a.epoch >= p.Epoch {
		a.expect(p)
		return
	}
	if owed, known := as.owed[p.ID]; known && owed.Epoch >= p.Epoch {
		return
	}
	if as.owed == nil || len(as.owed) >= maxOwed {
		as.owed = make(map[int64]eventlog.Producer)
	}
	as.owed[p.ID] = p
}

// settleLocked refuses to begin an epoch with a frame where one before it was refused.
func (as *accounts) settleLocked(a *account, cfg ProducerConfig) error {
	owed, known := as.owed[a.id]
	if known {
		a.expect(owed)
	}
	if known && a.epoch < owed.Epoch && owed.Epoch == *cfg.Epoch && owed.First != *cfg.Last+1 {
		return fmt.Errorf("numbers from %d on, the next is %d, which was refused: %w", *cfg.Last+1, owed.First, ErrOutOfOrder)
	}
	delete(as.owed, a.id)
	return nil
}

// expect lets the first number be that of a batch, where it is not known yet.
func (a *account) expect(p eventlog.Producer) {
	if a.open && a.epoch == p.Epoch && p.First >= 0 {
		a.last, a.open = p.First-1, false
	}
}
