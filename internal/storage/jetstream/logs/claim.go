package logs

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

// claimant is for whom a batch is appended: a producer with its claim, which is 0 where nobody has
// claimed it; or, if it is not set, nobody but this process.
type claimant struct {
	producer int64
	epoch    uint64
	set      bool
}

// A producer that nobody has claimed is claimed all the same, by the writer of its first batch, or
// else two processes could write for it in the same epoch. The salt of such a claim is even, that of
// one that was asked for odd: batches without a claim replace the former, and are refused by the
// latter.
func newSalt(asked bool) uint32 {
	salt := rand.Uint32()&^1 | 2
	if asked {
		salt |= 1
	}
	return salt
}

func wasAsked(e frames.Epoch) bool { return e.Salt()&1 != 0 }

func producerID(producer int64) frames.WriterID {
	return frames.WriterID{ID: uint64(producer), Producer: true}
}

// writerLocked gives the writer for a claimant; nil if its claim is lost. The stream is ready, unless
// this process is its own claimant.
func (p *part) writerLocked(who claimant) *writer {
	if !who.set {
		return p.ownLocked()
	}
	p.claims = slices.DeleteFunc(p.claims, func(w *writer) bool { return (w.w.Lost() || w.dropped) && w.w.Idle() && w.w.Settled() })
	id := producerID(who.producer)
	for _, w := range slices.Backward(p.claims) {
		asked := wasAsked(frames.Epoch(w.salt))
		if w.id == id {
			p.wakeLocked(w)
		}
		if w.id != id || w.w.Lost() || w.dropped || asked != (who.epoch != 0) {
			continue
		}
		if !asked || uint64(w.epoch) == who.epoch && !w.claiming {
			return w
		}
	}
	if who.epoch != 0 {
		return nil
	}
	epoch, _, known := p.fold.Writer(id)
	if known && wasAsked(epoch) {
		return nil
	}
	return p.claimLocked(id, newSalt(false), epoch)
}

func (p *part) claimLocked(id frames.WriterID, salt uint32, known frames.Epoch) *writer {
	w := newWriter(p, id, frames.NewClaim(id, salt, known))
	w.salt, w.claiming, w.used = salt, true, time.Now()
	p.claims = append(p.claims, w)
	return w
}

// Claim is eventlog.Partition's: a fence that holds, and the fold up to it.
func (p *partition) Claim(ctx context.Context, producer int64) (claim eventlog.Claim, err error) {
	part, err := p.use(ctx)
	if err != nil {
		return eventlog.Claim{}, err
	}
	var w *writer
	err = part.s.until(ctx, func() (bool, error) {
		if part.ended != nil || !part.s.readyLocked() {
			return false, part.ended
		}
		if w == nil || w.dropped {
			id := producerID(producer)
			epoch, _, _ := part.fold.Writer(id)
			w = part.claimLocked(id, newSalt(true), epoch)
			part.s.rouse()
		}
		if !w.w.Settled() {
			return false, nil
		}
		w.claiming = false
		claim = eventlog.Claim{Epoch: uint64(w.epoch), Next: part.fold.State().Next}
		return true, nil
	})
	return claim, err
}
