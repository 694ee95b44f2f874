package processor

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// surveyEvery is how often hub and store are asked for what nobody reports: new partitions, how
// far idle partitions are, checkpoints that were moved.
const surveyEvery = 30 * time.Second

// survey is the watchdog's goroutine.
func (in *instance) survey(ctx context.Context) {
	every := min(surveyEvery, max(in.cfg.StallAfter/4, time.Millisecond))
	for sleep.For(ctx, jitter(every), nil) == nil {
		if err := in.learn(ctx); err != nil && ctx.Err() == nil {
			in.report("ask for the hub's partitions", err)
		}
		in.surveyCheckpoints(ctx)
		for _, p := range in.ownPumps() {
			p.survey(ctx, every)
		}
	}
}

// surveyCheckpoints looks for checkpoints that an operator has moved. Partitions that are
// being worked on find out when they save theirs; idle ones would not.
func (in *instance) surveyCheckpoints(ctx context.Context) {
	read, cancel := in.storeContext(ctx)
	stored, err := in.store.Checkpoints(read, in.group)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			in.report("read checkpoints", err)
		}
		return
	}
	byPartition := make(map[string]Checkpoint, len(stored))
	for _, c := range stored {
		byPartition[c.Partition] = c
	}
	for _, p := range in.ownPumps() {
		c, ok := byPartition[p.id]
		if ok && p.ownership.read.Err() == nil && p.calls.opened.Load() && p.ledger.differs(c) {
			asking, cancel := in.storeContext(ctx)
			_ = p.ledger.verify(asking, false) // moved: the pump knows; else the next survey tries again
			cancel()
		}
	}
}

// survey asks for the newest event where the reader has reported nothing lately, and sees to it
// that what has come is read.
func (p *pump) survey(ctx context.Context, every time.Duration) {
	if p.progress.stale(time.Now(), every*9/10) {
		asking, cancel := p.in.storeContext(ctx)
		info, err := p.in.hub.Partition(asking, p.id)
		cancel()
		if err == nil { // else the reader will report it, if it lasts
			p.progress.learn(info, time.Now())
		}
	}
	switch p.progress.judge(time.Now(), p.in.cfg.StallAfter) {
	case stallReopen:
		p.report("wait for events that the partition has", ErrStalled)
		p.control.endSession(errReopen)
	case stallRelease:
		p.stall(nil)
		p.control.endSession(ErrStalled)
	}
}
