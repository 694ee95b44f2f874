package logs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// maxPending is how much may be submitted to a partition and not answered before others wait.
const maxPending = 16 << 20

// partition is a handle.
type partition struct {
	log  *log
	id   eventlog.PartitionID
	part atomic.Pointer[part] // nil until the first use
}

var _ eventlog.Partition = (*partition)(nil)

// use gives the partition as its stream knows it, and has that followed.
func (p *partition) use(ctx context.Context) (*part, error) {
	if known := p.part.Load(); known != nil {
		return known, known.use()
	}
	d, err := p.log.e.definitionOf(ctx, p.log)
	if err != nil {
		return nil, err
	}
	if p.id.Number >= d.partitions {
		return nil, fmt.Errorf("partition %s: the log has %d", p.id, d.partitions)
	}
	if d.state == isNew {
		return nil, fmt.Errorf("partition %s: its streams are being made: %w", p.id, eventlog.ErrUnavailable)
	}
	found, err := p.log.e.partAt(p.log, addressOf(p.id.Log, d, p.id.Number))
	if err != nil {
		return nil, err
	}
	p.part.Store(found)
	return found, found.use()
}

func (p *part) use() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	switch {
	case p.ended != nil:
		return p.ended
	case p.draining:
		return eventlog.ErrClosed
	}
	p.s.useLocked()
	return nil
}

// Submit is eventlog.Partition's.
func (p *partition) Submit(ctx context.Context, b eventlog.Batch) (eventlog.Receipt, error) {
	all, err := p.SubmitAll(ctx, []eventlog.Batch{b})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// SubmitAll is eventlog.Partition's. All batches go through one writer, since only what that sends
// has an order.
func (p *partition) SubmitAll(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Receipt, error) {
	if _, err := eventlog.CheckAll(batches); err != nil {
		return nil, err
	}
	encoded := make([]frames.Batch, len(batches))
	for i, b := range batches {
		if b.Place != nil && p.log.e.cfg.Fill[b.Form] == nil {
			return nil, fmt.Errorf("%w: nobody here can tell %s its position when it is read", eventlog.ErrForm, b.Form)
		}
		encoded[i] = encodeBatch(b, 0)
	}
	who, err := soleProducer(batches)
	if err != nil {
		return nil, err
	}
	part, err := p.use(ctx)
	if err != nil {
		return nil, err
	}
	var receipts []eventlog.Receipt
	err = part.s.until(ctx, func() (bool, error) {
		if !part.admitsLocked(who) || part.ended != nil {
			return false, part.ended
		}
		receipts, err = part.submitLocked(who, encoded)
		return true, err
	})
	return receipts, err
}

// admitsLocked is false while too much is under way, and where the fold has to be asked and is not
// there yet.
func (p *part) admitsLocked(who claimant) bool {
	return p.pending < maxPending && (!who.set || p.s.readyLocked())
}

// submitLocked gives batches to the writer of a claimant.
func (p *part) submitLocked(who claimant, batches []frames.Batch) ([]eventlog.Receipt, error) {
	if p.draining {
		return nil, eventlog.ErrClosed
	}
	p.s.useLocked() // also where it is full: who follows it makes room
	if err := p.s.room.check(p.s.e.cfg.TendInterval); err != nil {
		return nil, fmt.Errorf("append to %s of %s: %w", p.subject, p.s.name, err)
	}
	w := p.writerLocked(who)
	receipts, now := make([]eventlog.Receipt, len(batches)), time.Now()
	for i, b := range batches {
		if w == nil {
			receipts[i] = refused(eventlog.ErrFenced)
		} else {
			receipts[i] = w.submit(b, 0, now)
		}
	}
	p.s.rouse()
	return receipts, nil
}

// Bounds is eventlog.Partition's.
func (p *partition) Bounds(ctx context.Context) (eventlog.Bounds, error) {
	part, err := p.use(ctx)
	if err != nil {
		return eventlog.Bounds{}, err
	}
	if err := part.sync(ctx); err != nil {
		return eventlog.Bounds{}, err
	}
	return part.bounds(ctx)
}

// bounds is what the fold says, once there is one.
func (p *part) bounds(ctx context.Context) (b eventlog.Bounds, err error) {
	err = p.s.until(ctx, func() (bool, error) {
		if p.ended != nil || !p.s.readyLocked() {
			return false, p.ended
		}
		b = p.boundsLocked()
		return true, nil
	})
	return b, err
}

// Sealed is eventlog.Partition's: it stores a frame that is void to everybody, behind whatever was
// stored before, and folds up to it.
func (p *partition) Sealed(ctx context.Context) (eventlog.Bounds, error) {
	part, err := p.use(ctx)
	if err != nil {
		return eventlog.Bounds{}, err
	}
	var barrier []byte
	err = part.s.until(ctx, func() (bool, error) {
		if part.ended != nil || !part.s.readyLocked() || !part.settledLocked() {
			return false, part.ended
		}
		h := frames.Header{Writer: part.s.e.process} // no fence of epoch 0 ever holds
		h.Base, h.Time = part.fold.Stamp(part.s.line.at, part.s.e.stamp(time.Now()))
		barrier = frames.AppendFence(nil, h)
		return true, nil
	})
	if err != nil {
		return eventlog.Bounds{}, err
	}
	var a ack
	err = part.ask(ctx, func() (err error) { // another one does no harm
		if a, err = part.s.store(ctx, part.subject, barrier); errors.Is(err, streams.ErrUncertain) {
			err = streams.ErrUnavailable
		}
		return err
	})
	if err != nil {
		return eventlog.Bounds{}, err
	}
	if err := part.foldedTo(ctx, a.seq); err != nil {
		return eventlog.Bounds{}, err
	}
	return part.bounds(ctx)
}

// store publishes a message of nobody's and waits for its answer.
func (s *stream) store(ctx context.Context, subject string, message []byte) (ack, error) {
	reply := make(chan ack, 1)
	s.publish(&sent{subject: subject, message: message, reply: reply})
	select {
	case a := <-reply:
		return a, a.err
	case <-ctx.Done():
		return ack{}, context.Cause(ctx)
	}
}

// Peek is eventlog.Partition's.
func (p *partition) Peek() eventlog.Bounds {
	part := p.part.Load()
	if part == nil {
		return eventlog.Bounds{}
	}
	part.s.mu.Lock()
	defer part.s.mu.Unlock()
	return part.known
}

// Sole is eventlog.Partition's.
func (p *partition) Sole() bool { return false }

// Trim is eventlog.Partition's: it is noted, and done by the background work.
func (p *partition) Trim(ctx context.Context, below eventlog.Sequence) error {
	part, err := p.use(ctx)
	if err != nil {
		return err
	}
	part.s.mu.Lock()
	defer part.s.mu.Unlock()
	part.trim = max(part.trim, below)
	return part.ended
}

// Cursor is eventlog.Partition's.
func (p *partition) Cursor(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
	part, err := p.use(ctx)
	if err != nil {
		return nil, err
	}
	c := &cursor{part: part}
	if err := c.seek(ctx, at); err != nil {
		return nil, err
	}
	return c, nil
}

var errProducers = errors.New("batches of several producers cannot be submitted together")

// soleProducer is for whom batches are appended together.
func soleProducer(batches []eventlog.Batch) (who claimant, err error) {
	for _, b := range batches {
		if !b.Producer.Set {
			continue
		}
		one := claimant{producer: b.Producer.ID, epoch: b.Claim.Epoch, set: true}
		if who.set && who != one {
			return claimant{}, errProducers
		}
		who = one
	}
	return who, nil
}
