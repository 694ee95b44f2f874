package sim

import (
	"context"
	"sync"

	"github.com/eventyard/eventyard/processor"
)

// worker is the host form of the handler. It checks the order of its own calls.
type worker struct {
	run       *run
	partition string

	mu    sync.Mutex
	stage stage // guarded by mu
	busy  bool  // guarded by mu
}

type stage int

const (
	unopened stage = iota
	open
	closed
)

func (r *run) worker(partition string) processor.Worker { return &worker{run: r, partition: partition} }

// enter checks that a call comes at the right stage, alone, and goes on to the next.
func (w *worker) enter(call string, from, to stage) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage != from && (call != "Close" || w.stage == closed) {
		w.run.world.ledger.breakRule(ruleHost, "%v, partition %s: %s at stage %d", w.run, w.partition, call, w.stage)
	}
	if w.busy {
		w.run.world.ledger.breakRule(ruleHost, "%v, partition %s: %s during another call", w.run, w.partition, call)
	}
	w.stage, w.busy = to, true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy = false
	}
}

func (w *worker) Open(context.Context, *processor.Partition) error {
	defer w.enter("Open", unopened, open)()
	return nil
}

func (w *worker) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	defer w.enter("ProcessEvents", open, open)()
	return w.run.handle(ctx, b)
}

func (w *worker) ProcessError(context.Context, *processor.Partition, error) {}

// Close tries to save what was done, as hosts do.
func (w *worker) Close(ctx context.Context, p *processor.Partition, why processor.Reason) error {
	defer w.enter("Close", open, closed)()
	if why == processor.LeaseLost {
		return nil
	}
	return p.Checkpoint(ctx)
}
