package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// run is one run of an instance, from its start to its end. An instance that is started again
// with the same id is another run.
type run struct {
	world *world
	id    string
	n     int
	dice  dice
	gate  *gate
	line  *line
	cut   atomic.Bool // only this one cannot reach the store

	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned
	err    error         // what it returned; read after ended

	// Guarded by ledger.mu.
	disturbed time.Time // when something last befell it; zero: never
	gone      bool      // it has crashed, or has stopped and owns nothing by right
}

func (r *run) String() string { return fmt.Sprintf("%s#%d", r.id, r.n) }

// disturb notes that from now on, for a while, this run is not to blame for repeats.
func (r *run) disturb() {
	l := r.world.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r.disturbed = time.Now()
}

func (r *run) disturbedSinceLocked(t time.Time) bool {
	return !r.disturbed.IsZero() && r.disturbed.After(t)
}

// wellLocked: nothing has befallen it lately.
func (r *run) wellLocked(now time.Time) bool {
	return !r.gone && !r.disturbedSinceLocked(now.Add(-grace))
}

// isWell is wellLocked for the director.
func (r *run) isWell() bool {
	l := r.world.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.wellLocked(time.Now())
}

// goes notes that whatever is in its name is nobody's.
func (r *run) goes() {
	l := r.world.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r.gone = true
}

// errWork is a handler's own failure.
var errWork = errors.New("the database says no")

// work is what the handler does: mostly a little, sometimes more, sometimes in vain.
func (r *run) work(c *call) (err error) {
	select {
	case <-r.gate.dead: // nobody sees what a dead process does
		<-c.ctx.Done()
		return errDead
	default:
	}
	d := r.dice.of("work "+c.partition, int(c.epoch)<<40+int(c.first())<<8+c.attempt)
	r.world.ledger.begin(c)
	defer func() { r.world.ledger.returns(c, err) }()
	if err := r.toil(c.ctx, d); err != nil {
		return err
	}
	switch {
	case d.chance(r.world.plan.failures):
		return errWork
	case d.chance(r.world.plan.failures / 10):
		defer func() { err = errWork }() // what the ledger is told
		panic("the handler has a bug")
	}
	r.world.ledger.done(c)
	if c.checkpoint == nil {
		return nil
	}
	return c.checkpoint(c.ctx)
}

// toil takes time. It gives an error if the context ends meanwhile.
func (r *run) toil(ctx context.Context, d *dice) error {
	takes, heeds := d.between(time.Millisecond, 300*time.Millisecond), ctx
	switch {
	case d.chance(r.world.plan.long):
		takes = d.between(time.Second, 30*time.Second)
	case d.chance(r.world.plan.stubborn):
		r.disturb()
		defer r.disturb()
		takes, heeds = d.between(time.Second, 100*time.Second), context.Background()
	}
	if err := r.gate.wait(heeds, takes); err != nil {
		return err
	}
	if err := r.gate.pass(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// handle is the handler that processor.Run calls.
func (r *run) handle(ctx context.Context, b *processor.Batch) error {
	if len(b.Events) == 0 {
		return nil
	}
	c := &call{run: r, partition: b.Partition.ID(), epoch: b.Partition.Epoch(), attempt: b.Attempt, events: b.Events, ctx: ctx}
	if !r.world.plan.checkpoints.Auto {
		c.checkpoint = b.Checkpoint
	}
	return r.work(c)
}
