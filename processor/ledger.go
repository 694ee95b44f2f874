package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// ledger keeps the checkpoint of one partition: what is marked as done, what is stored, and
// the rules by which one becomes the other.
//
// A write whose answer is lost is resolved before anything else is written: Begin shows what is
// stored, and it is compared with what was tried. A checkpoint that someone else has moved counts:
// what was marked is forgotten, and the partition starts again from there. Marks belong to a
// generation, which such a move ends.
//
// Handlers mark, the pump opens and closes, the survey verifies. The store is asked by one of them
// at a time, who holds the token; the lock is for moments.
type ledger struct {
	ledgerConfig
	asking chan struct{}  // capacity 1: a token, held while the store is asked
	kick   chan struct{}  // capacity 1: the saver is to look again
	saver  sync.WaitGroup // runs while something marked has a time at which it is written

	mu         sync.Mutex // guards what follows
	saved      Checkpoint
	base       int64    // everything of this generation up to here is stored
	marked     position // seq -1: nothing since saved
	markedAt   time.Time
	tried      int64 // what was last tried to be written, by us or by the handler itself
	hurry      bool  // write what is marked without waiting for more
	resting    bool  // the partition is idle: no more will come soon of what is marked
	generation int
	hubID      string
	unsure     bool // the answer to a write was lost
	saving     bool // the saver runs
	stopped    bool // it is started no more
}

// ledgerConfig is what a ledger works with.
type ledgerConfig struct {
	store    Store
	group    Group
	lease    Lease // whose owner and epoch guard the writes
	policy   Checkpoints
	backoff  Backoff
	timeout  time.Duration
	open     context.Context // what is marked is written later until it ends
	report   func(doing string, err error)
	onFenced func() // the lease is another's
	onMoved  func() // start again
}

func newLedger(cfg ledgerConfig) *ledger {
	return &ledger{ledgerConfig: cfg, kick: make(chan struct{}, 1), asking: make(chan struct{}, 1),
		marked: nowhere, saved: Checkpoint{Sequence: -1}}
}

// begin fences the owners before us and reads the checkpoint, which starts a generation.
func (l *ledger) begin(ctx context.Context, hubID string) (Checkpoint, error) {
	if err := l.acquire(ctx); err != nil {
		return Checkpoint{}, err
	}
	defer l.release()
	c, err := l.ask(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved, l.marked, l.unsure = c, nowhere, false
	l.base, l.tried, l.hubID = c.Sequence, -1, hubID
	l.generation++
	return c, nil
}

// countFrom says which event is the last one before those of this generation.
func (l *ledger) countFrom(before position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base = before.seq
}

// pin stores a position to go on from that was found without a checkpoint. It is tried once.
func (l *ledger) pin(ctx context.Context, pos position) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.release()
	l.mu.Lock()
	l.marked = pos
	l.mu.Unlock()
	return l.write(ctx)
}

func (l *ledger) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation
}

// mark records that everything up to pos is done. What is stored already, as by a handler that does
// it by itself, is not written again.
func (l *ledger) mark(pos position, generation int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.generation {
		return fmt.Errorf("checkpoint at %d: %w", pos.seq, ErrMoved)
	}
	if pos.seq <= max(l.marked.seq, l.base) {
		return nil
	}
	first := l.marked.seq < 0
	if first {
		l.markedAt = time.Now()
	}
	l.marked = pos
	l.hurry = l.hurry || l.resting
	if first && l.policy.Every > 0 || l.hurry || l.policy.Events > 0 && l.marked.seq-l.base >= int64(l.policy.Events) {
		l.nudgeLocked()
	}
	return nil
}

// idle lets what is marked be written now. While the partition rests, so is what will be marked:
// nobody calls idle again until it is busy.
func (l *ledger) idle(resting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = resting
	if l.marked.seq >= 0 && !l.hurry {
		l.hurry = true
		l.nudgeLocked()
	}
}

// busy ends the rest.
func (l *ledger) busy() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = false
}

// nudgeLocked lets the saver look at what is marked, where saving is deferred at all. It runs only
// while it has something to wait for: an idle partition has none.
func (l *ledger) nudgeLocked() {
	switch {
	case !l.policy.deferred() || l.stopped:
	case !l.saving:
		l.saving = true
		l.saver.Go(l.save)
	default:
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
}

// save is the saver: it writes what is marked when it is due, and ends when nothing has a time.
func (l *ledger) save() {
	for l.open.Err() == nil {
		now, at := l.due(time.Now())
		switch {
		case now:
			if err := l.flush(l.open); err != nil && l.open.Err() == nil {
				l.report("save checkpoint", err)
			}
		case at.IsZero():
			return
		default:
			timer := time.NewTimer(time.Until(at))
			select {
			case <-l.open.Done():
			case <-timer.C:
			case <-l.kick:
			}
			timer.Stop()
		}
	}
}

// due reports whether what is marked has to be written now, and else when; neither: the saver ends.
func (l *ledger) due(now time.Time) (due bool, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marked.seq >= 0 {
		if l.hurry {
			return true, at
		}
		due, at = l.policy.due(l.marked.seq-l.base, l.markedAt, now)
	}
	l.saving = due || !at.IsZero()
	return due, at
}

// stop waits for the saver, which is not started again. What is marked from now on flush writes.
func (l *ledger) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.saver.Wait()
}

// due is the policy: so many events marked, the first of them then. A zero time means that only
// more events, idleness or the end bring it about.
func (c Checkpoints) due(events int64, first, now time.Time) (bool, time.Time) {
	if c.Events > 0 && events >= int64(c.Events) {
		return true, time.Time{}
	}
	if c.Every <= 0 {
		return false, time.Time{}
	}
	at := first.Add(c.Every)
	return !now.Before(at), at
}

// flush writes what is marked, trying until it is written, or found to be in vain, or ctx ends.
func (l *ledger) flush(ctx context.Context) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.release()
	for failures := 1; ; failures++ {
		err := l.write(ctx)
		if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrMoved) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		l.report("save checkpoint", err)
		if sleep.For(ctx, l.backoff.delay(failures), nil) != nil {
			return err
		}
	}
}

// write tries once. The token is held.
func (l *ledger) write(ctx context.Context) error {
	l.mu.Lock()
	unsure := l.unsure
	l.mu.Unlock()
	if unsure {
		if err := l.resolve(ctx, false); err != nil {
			return err
		}
	}
	l.mu.Lock()
	if l.marked.seq < 0 {
		l.mu.Unlock()
		return nil
	}
	c := l.checkpointLocked(l.marked)
	l.mu.Unlock()
	saving, cancel := context.WithTimeout(ctx, l.timeout)
	got, err := l.store.Save(saving, l.group, l.lease, c)
	cancel()
	switch {
	case errors.Is(err, ErrFenced):
		l.onFenced()
		return err
	case errors.Is(err, ErrConflict):
		return l.resolve(context.WithoutCancel(ctx), true)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.unsure = true
		return err
	}
	l.storedLocked(got)
	return nil
}

// checkpointLocked is what would be stored for a position.
func (l *ledger) checkpointLocked(pos position) Checkpoint {
	l.tried = pos.seq
	return Checkpoint{
		Partition: l.lease.Partition, Sequence: pos.seq, Offset: pos.offset,
		Epoch: l.lease.Epoch, HubID: l.hubID, Version: l.saved.Version,
	}
}

// storedLocked takes over what the store says it has.
func (l *ledger) storedLocked(c Checkpoint) {
	l.saved, l.unsure, l.hurry, l.base = c, false, false, c.Sequence
	if l.marked.seq <= c.Sequence {
		l.marked = nowhere
	} else {
		l.markedAt = time.Now()
	}
}

// resolve asks what is stored after an answer was lost, or after a conflict (then somebody did
// write). The token is held. nil: what is stored is known and ours.
func (l *ledger) resolve(ctx context.Context, conflict bool) error {
	l.mu.Lock()
	before := l.saved
	l.mu.Unlock()
	c, err := l.ask(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	tried := l.tried
	ours := c.Epoch == l.lease.Epoch || c.Epoch == 0
	switch {
	case ours && tried >= 0 && c.Sequence == tried: // it was written after all
		l.storedLocked(c)
		l.mu.Unlock()
		return nil
	case !conflict && c.Sequence == before.Sequence && c.Offset == before.Offset:
		// It was not, or Begin has only renewed its version. What is marked stays to be written:
		// where the stored checkpoint could not be right it may even be lower. What a handler has
		// stored meanwhile is newer.
		l.unsure = false
		if l.saved.Version == before.Version {
			l.saved = c
		}
		l.mu.Unlock()
		return nil
	}
	// Somebody has moved it: what was marked is forgotten, and the partition starts again.
	l.saved, l.marked, l.unsure, l.hurry = c, nowhere, false, false
	l.generation++
	l.mu.Unlock()
	l.onMoved()
	return fmt.Errorf("checkpoint at %d: %w", tried, ErrMoved)
}

// ask reads the checkpoint as the lease's owner.
func (l *ledger) ask(ctx context.Context) (Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	c, err := l.store.Begin(ctx, l.group, l.lease)
	if errors.Is(err, ErrFenced) {
		l.onFenced()
	}
	return c, err
}

// differs reports whether a record that was read looks like another than ours.
func (l *ledger) differs(seen Checkpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seen.Version != l.saved.Version && (seen.Sequence != l.saved.Sequence || seen.Offset != l.saved.Offset)
}

// verify finds out what is stored: after a handler that stores by itself met a conflict, or when
// somebody may have moved the checkpoint while nothing was to be written. What was only read before
// our own last write is no move.
func (l *ledger) verify(ctx context.Context, conflict bool) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.release()
	return l.resolve(ctx, conflict)
}

// savedUpTo is the stored checkpoint; -1: none.
func (l *ledger) savedUpTo() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved.Sequence
}

// recorded takes a checkpoint in that the handler has stored by itself.
func (l *ledger) recorded(c Checkpoint, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation == l.generation {
		l.storedLocked(c)
	}
}

func (l *ledger) acquire(ctx context.Context) error {
	select {
	case l.asking <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *ledger) release() { <-l.asking }

// intend gives the checkpoint that a handler is about to store by itself, and up to where
// everything is stored already.
func (l *ledger) intend(pos position, generation int) (Checkpoint, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.generation {
		return Checkpoint{}, 0, fmt.Errorf("mark %d: %w", pos.seq, ErrMoved)
	}
	if pos.seq < 0 {
		return l.saved, l.base, nil
	}
	return l.checkpointLocked(pos), l.base, nil
}
