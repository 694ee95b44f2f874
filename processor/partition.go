package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/event"
)

// Partition is a partition while this instance owns it.
type Partition struct {
	pump *pump
	pull *puller // nil unless Processor.Partitions gave it
}

func (p *Partition) ID() string { return p.pump.id }

// Epoch is the lease's: a fencing token for systems of your own.
func (p *Partition) Epoch() int64 { return p.pump.epoch }

// Context ends, with its cause, when the partition is given up.
func (p *Partition) Context() context.Context { return p.pump.ownership.work }

// Status is the partition's.
func (p *Partition) Status() Status { return p.pump.status() }

// Checkpoint writes the newest event that was given to the handler in a call that has returned nil,
// or of the batch that is being handled; for Close. With Lanes it is the newest before which all
// calls have returned nil.
func (p *Partition) Checkpoint(ctx context.Context) error {
	calls := p.pump.calls
	inCall := p.pump.in.cfg.Lanes <= 1 && calls.underWay() && !calls.closing.Load()
	pos, generation := p.pump.progress.reached(inCall)
	if pos.seq < 0 {
		return nil
	}
	if calls.taken.Load() {
		return errMarkTaken
	}
	if err := p.pump.ledger.mark(pos, generation); err != nil {
		return err
	}
	return p.pump.save(ctx)
}

// Batch is what a handler is called with.
type Batch struct {
	// Events are in order; empty only with Config.CallWhenIdle. The slice is used again when the
	// call has returned: copy it to keep it longer. The events themselves may be kept.
	Events []event.Event
	// Attempt is 1 the first time, and counts the calls for the same batch.
	Attempt   int
	Partition *Partition

	gen     *generation
	end     position   // of the newest event
	lane    *lane      // nil: in order
	before  []position // with lanes: the position before each event, in the partition
	catchUp bool       // with lanes: it is handled although the partition is being given up
}

// Leaving is closed when no further call will start: the partition is to be given up, or it starts
// again because its checkpoint was moved or the hub was recreated. A handler that waits in the
// middle of its work, maybe for longer than Config.Handoff allows, stops waiting then and returns
// ErrUndone, so that the partition continues elsewhere at once; what it has checkpointed stays. A
// handler that does not wait can ignore it: with Lanes a call may even begin with it closed, to
// catch up with what other lanes have done.
func (b *Batch) Leaving() <-chan struct{} {
	if b.gen == nil { // made by somebody's test
		return nil
	}
	return b.gen.ctx.Done()
}

// Checkpoint records that everything up to the newest event of the batch is done. With
// Checkpoints.Every or Events it only marks it. With Lanes it counts for the batch's lane, and what
// is stored is the newest event before which every lane is done. When the store cannot be reached
// it retries until ctx ends. After ErrLeaseLost, ErrFenced or ErrMoved do not retry.
func (b *Batch) Checkpoint(ctx context.Context) error {
	if b.end.seq < 0 {
		return nil
	}
	return b.checkpoint(ctx, b.end)
}

// CheckpointAt records that everything up to this event of the batch is done. A checkpoint that
// was made already is not moved back by it.
func (b *Batch) CheckpointAt(ctx context.Context, ev event.Event) error {
	if b.end.seq < 0 || ev.Sequence > b.end.seq || ev.Sequence < b.Events[0].Sequence {
		return fmt.Errorf("checkpoint at %d: the event is not of this batch", ev.Sequence)
	}
	return b.checkpoint(ctx, positionOf(&ev))
}

// errMarkTaken: the checkpoint would wait for the transaction that is to move it, and that for the
// handler.
var errMarkTaken = errors.New("checkpoint: this call has taken the mark to store it by itself: postgres.InTx moves the checkpoint when the function returns nil")

func (b *Batch) checkpoint(ctx context.Context, pos position) error {
	p := b.Partition.pump
	if p.calls.taken.Load() {
		return errMarkTaken
	}
	if p.ownership.lost() && !p.calls.closing.Load() {
		return fmt.Errorf("checkpoint at %d: %w", pos.seq, ErrLeaseLost)
	}
	if b.lane != nil {
		pos = b.lane.all.mark(b, pos)
	}
	return b.record(ctx, pos)
}

// record marks the partition's position, and saves it unless that has time.
func (b *Batch) record(ctx context.Context, pos position) error {
	p := b.Partition.pump
	if pos.seq < 0 {
		return nil
	}
	if err := p.ledger.mark(pos, b.gen.number); err != nil {
		return err
	}
	if p.in.cfg.Checkpoints.deferred() {
		return nil
	}
	return p.save(ctx)
}

// save writes what is marked. A context that has ended because the partition is to be given up is
// no obstacle: the lease is ours until then, and what was done shall not be repeated.
func (p *pump) save(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrHandoff) || errors.Is(cause, ErrShutdown) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), p.in.cfg.storeTimeout())
		defer cancel()
	}
	if !p.calls.closing.Load() { // Close may try even after the lease was lost: the store decides
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(p.ownership.own, func() { cancel(ErrLeaseLost) })()
	}
	err := p.ledger.flush(ctx)
	if err != nil && p.ownership.lost() && !errors.Is(err, ErrLeaseLost) {
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	return err
}

// Mark is everything that a store needs to record a checkpoint by itself, as in a transaction of
// its own. With Lanes there is none.
type Mark struct {
	Group      Group
	Lease      Lease
	Checkpoint Checkpoint
	// Store is where the processor keeps its records, and so where the checkpoint belongs.
	Store Store
	// Stored is up to where everything is known to be stored, if the checkpoint is still in the
	// Version given. It may lie in the batch or past it: an answer was lost and then found out.
	Stored int64
}

// Mark gives what Checkpoint would store, for stores that store it together with what the handler
// does (postgres.InTx); for an empty batch the checkpoint as it is, which is not to be stored.
// Recorded notes that it was stored, with the checkpoint as it is now. A handler that meets
// ErrConflict or ErrFenced in storing it returns that error: the processor finds out why. Until
// Recorded, or the end of the call, Checkpoint and its like are an error.
func (b *Batch) Mark() (Mark, error) {
	p := b.Partition.pump
	switch {
	case b.lane != nil:
		return Mark{}, errMarkLanes
	case p.ownership.lost():
		return Mark{}, fmt.Errorf("mark: %w", ErrLeaseLost)
	}
	c, stored, err := p.ledger.intend(b.end, b.gen.number)
	p.calls.taken.Store(err == nil)
	return Mark{Group: p.in.group, Lease: p.ledger.lease, Checkpoint: c, Store: p.in.store, Stored: stored}, err
}

var errMarkLanes = errors.New("mark: with Config.Lanes no single call knows the partition's checkpoint, so none can be stored " +
	"together with what a call does: for postgres.InTx leave Lanes at 0")

// Recorded notes that the mark was stored.
func (b *Batch) Recorded(c Checkpoint) {
	b.Partition.pump.calls.taken.Store(false)
	b.Partition.pump.ledger.recorded(c, b.gen.number)
}
