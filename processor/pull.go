package processor

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// puller is the worker of the pull form: each call waits until the loop over the partition's
// batches has taken the batch and asks for the next one.
type puller struct {
	part    *Partition
	give    chan<- *Partition
	turn    chan struct{} // a token: one batch is out at a time, also with lanes
	batches chan *Batch
	outcome chan error
	gone    chan struct{} // closed when the loop has ended
	leave   sync.Once
}

// Open gives the partition to the loop over partitions.
func (w *puller) Open(ctx context.Context, p *Partition) error {
	select {
	case w.give <- p:
		return nil
	case <-p.pump.ownership.read.Done():
		return context.Cause(p.pump.ownership.read)
	case <-ctx.Done():
		return errors.New("nobody takes the partition: the loop over partitions is busy")
	}
}

// errUntaken: the loop over the partition's batches never got this one.
var errUntaken = errors.New("nobody takes the partition's batches")

func (w *puller) ProcessEvents(ctx context.Context, b *Batch) error {
	read := w.part.pump.ownership.read
	select {
	case w.turn <- struct{}{}:
	case <-read.Done():
		return errUntaken
	case <-ctx.Done():
		return errUntaken
	}
	defer func() { <-w.turn }()
	select {
	case w.batches <- b:
	case <-w.gone:
		return w.letGo()
	case <-read.Done():
		return errUntaken
	case <-ctx.Done():
		return errUntaken
	}
	// The loop's body has no context of its own that could end with a call's time, so the
	// partition's does, and the partition is given up.
	defer context.AfterFunc(ctx, func() { w.part.pump.drain(context.Cause(ctx), 0) })()
	select {
	case err := <-w.outcome:
		return err
	case <-w.gone:
		return w.letGo()
	}
}

// letGo is for when the loop has ended: the partition is given up before the call returns.
func (w *puller) letGo() error {
	w.part.pump.drain(errLetGo, 0)
	return errLetGo
}

func (w *puller) ProcessError(context.Context, *Partition, error) {}
func (w *puller) Close(context.Context, *Partition, Reason) error { return nil }

// Batches gives batches until the partition is given up or ctx ends. Asking for the next says that
// the one before is done (with Checkpoints.Auto it is marked). Only for partitions that
// Processor.Partitions gave. Ending the loop releases the partition; the batch it ended in is not
// done. ErrLeaseLost is the last thing given when the lease was lost.
func (p *Partition) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		if p.pull == nil {
			yield(nil, errors.New("batches: the partition was not given by Processor.Partitions"))
			return
		}
		defer func() {
			p.pull.leave.Do(func() { close(p.pull.gone) })
			p.pull.letGo()
		}()
		owned := p.pump.ownership
		for {
			select {
			case b := <-p.pull.batches:
				if !yield(b, nil) {
					return
				}
				p.pull.outcome <- nil
			case <-ctx.Done():
				return
			case <-p.pull.gone:
				yield(nil, errLetGo)
				return
			case <-owned.read.Done():
				if owned.lost() { // else the partition is given up in good order
					yield(nil, ErrLeaseLost)
				}
				return
			}
		}
	}
}

// Partitions is the pull form: it runs the processor while the loop goes on and gives each
// partition when it is taken. Work on each in a goroutine of its own. When the loop ends the
// processor stops: it ends once all partitions' loops have ended. An error is the last thing given.
func (p *Processor) Partitions(ctx context.Context) iter.Seq2[*Partition, error] {
	return func(yield func(*Partition, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		give := make(chan *Partition)
		ended := make(chan struct{})
		var err error
		go func() {
			defer close(ended)
			err = p.run(ctx, func(part *Partition) Worker {
				part.pull = &puller{part: part, give: give, turn: make(chan struct{}, 1), batches: make(chan *Batch),
					outcome: make(chan error), gone: make(chan struct{})}
				return part.pull
			})
		}()
		defer func() { cancel(); <-ended }()
		for {
			select {
			case part := <-give:
				if !yield(part, nil) {
					return
				}
			case <-ended:
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}
}
