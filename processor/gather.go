package processor

import (
	"context"
	"time"
)

// gathering says when a batch is full enough.
type gathering struct {
	min, max int
	wait     time.Duration
}

// enough tells whether the handler is to be called now with what there is, which may be
// nothing: then the partition was idle for long. Otherwise more is waited for until the
// time given. quiet is when the call before ended, first when the first event of this
// batch came.
func (g gathering) enough(have int, quiet, first, now time.Time) (bool, time.Time) {
	if have >= g.min {
		return true, time.Time{}
	}
	until := quiet.Add(g.wait)
	if have > 0 {
		until = first.Add(g.wait)
	}
	return !now.Before(until), until
}

// patience gives contexts that end at a certain time, making few of them: one that ends too early
// does, as whoever waits looks at the clock anyway. A busy partition so makes one for each
// MaxWait and not one for each batch. One goroutine uses it.
type patience struct {
	ctx    context.Context
	cancel context.CancelFunc
	parent context.Context
	end    time.Time
}

func (p *patience) until(parent context.Context, t time.Time) context.Context {
	if p.ctx != nil && p.parent == parent && p.ctx.Err() == nil && !p.end.After(t) {
		return p.ctx
	}
	p.release()
	p.ctx, p.cancel = context.WithDeadline(parent, t)
	p.parent, p.end = parent, t
	return p.ctx
}

func (p *patience) release() {
	if p.cancel != nil {
		p.cancel()
	}
	p.ctx, p.cancel, p.parent = nil, nil, nil
}
