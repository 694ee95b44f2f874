package processor

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/hub"
)

// surveyEvery is how often hub and store are asked for what nobody tells: new partitions, how
// far idle partitions are, checkpoints that were moved.
const surveyEvery = 30 * time.Second

// survey is the watchdog's goroutine.
func (in *instance) survey(ctx context.Context) {
	every := min(surveyEvery, max(in.cfg.StallAfter/4, time.Millisecond))
	for sleep(ctx, jitter(every)) == nil {
		if err := in.learn(ctx); err != nil && ctx.Err() == nil {
			in.report("ask for the hub's partitions", err)
		}
		in.surveyCheckpoints(ctx)
		for _, p := range in.ownPumps() {
			p.survey(ctx, every)
		}
	}
}

func (in *instance) ownPumps() []*pump {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := make([]*pump, 0, len(in.pumps))
	for _, p := range in.pumps {
		list = append(list, p)
	}
	return list
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
		if c, ok := byPartition[p.id]; ok && p.read.Err() == nil {
			p.verify(ctx, c)
		}
	}
}

// verify finds out about a checkpoint that looks as if it were moved.
func (p *pump) verify(ctx context.Context, c Checkpoint) {
	if !p.opened.Load() || !p.ledger.differs(c) {
		return
	}
	ctx, cancel := p.in.storeContext(ctx)
	defer cancel()
	_ = p.ledger.verify(ctx) // moved: the pump was told; else the next survey tries again
}

// survey asks for the newest event where the reader has told nothing lately, and sees to it
// that what has come is read.
func (p *pump) survey(ctx context.Context, every time.Duration) {
	if p.stale(every) {
		p.askNewest(ctx)
	}
	switch p.progress(time.Now()) {
	case stallReopen:
		p.report("wait for events that the partition has", ErrStalled)
		p.restart(errReopen)
	case stallRelease:
		p.stall(nil)
		p.restart(ErrStalled)
	}
}

func (p *pump) stale(every time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.newestAt) >= every*9/10
}

func (p *pump) askNewest(ctx context.Context) {
	ctx, cancel := p.in.storeContext(ctx)
	defer cancel()
	info, err := p.in.hub.Partition(ctx, p.id)
	if err != nil {
		return // the reader will tell of it, if it lasts
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newestAt = time.Now()
	if info.Last > p.newest.Sequence {
		p.newest = hub.LastEnqueued{Sequence: info.Last, Offset: info.LastOffset, Enqueued: info.LastEnqueued}
	}
	if info.Empty && p.before.seq < info.Last {
		p.before = position{seq: info.Last} // removed, and so not there to be read
	}
}

// progress judges the pump, and remembers what was done about it.
func (p *pump) progress(now time.Time) stall {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.anchored && p.last.seq < 0, p.newest.Sequence <= max(p.last.seq, p.before.seq)+p.unread:
		p.behind = time.Time{}
	case p.behind.IsZero():
		p.behind = now
	}
	s := judgeStall(p.behind, p.waiting, p.reopened, now, p.in.cfg.StallAfter)
	switch {
	case s == stallReopen:
		p.reopened = now
	case p.waiting.IsZero() || p.reopened.Before(p.waiting):
		p.reopened = time.Time{}
	}
	return s
}

type stall int

const (
	stallNone stall = iota
	stallReopen
	stallRelease
)

// judgeStall is the watchdog's rule: with events to read and none coming for so long the reader is opened
// anew; if that does not help for as long again, the partition is released. behind is since when there is something
// to read, zero: nothing; waiting is since when the reader has given nothing; zero: it is not waited for, as a call is under way.
func judgeStall(behind, waiting, reopened, now time.Time, after time.Duration) stall {
	if waiting.Before(behind) && !waiting.IsZero() {
		waiting = behind
	}
	switch {
	case behind.IsZero() || waiting.IsZero() || now.Sub(waiting) < after:
		return stallNone
	case reopened.IsZero() || reopened.Before(waiting):
		return stallReopen
	case now.Sub(reopened) < after:
		return stallNone
	}
	return stallRelease
}
