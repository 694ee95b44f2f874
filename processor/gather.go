package processor

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
)

// gathering says when a batch is full enough.
type gathering struct {
	min, max int
	wait     time.Duration
}

// enough reports whether the handler is to be called now with what there is, which may be nothing:
// then the partition was idle for long. Otherwise more is waited for until the time given. quiet is
// when the call before ended, first when the first event of this batch came.
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

// gatherer reads batches into one buffer. The pump's goroutine alone uses it. While the partition
// rests it holds neither a buffer nor a timer.
type gatherer struct {
	rule     gathering
	progress *progress
	report   func(doing string, err error)
	buf      []event.Event
	quiet    time.Time // when the last call ended
	resting  bool      // nothing is to be done before an event comes
	patience patience
}

// done notes that what was gathered is dealt with.
func (g *gatherer) done() { g.quiet = time.Now() }

// rest lets the next batch be waited for without end.
func (g *gatherer) rest() {
	g.resting, g.buf = true, nil
	g.patience.release()
}

// next reads a batch, which is valid until it is called again; an empty one means that nothing
// has come for so long.
func (g *gatherer) next(ctx context.Context, r hub.Reader) ([]event.Event, error) {
	g.buf = g.buf[:0]
	g.progress.wait(time.Now())
	defer func() {
		newest, known := r.LastEnqueued()
		g.progress.took(len(g.buf) > 0, g.quiet, newest, known)
	}()
	var first time.Time
	for {
		wait := ctx
		if !g.resting {
			enough, until := g.rule.enough(len(g.buf), g.quiet, first, time.Now())
			if enough {
				return g.buf, nil
			}
			wait = g.patience.until(ctx, until)
		}
		had := len(g.buf)
		var err error
		g.buf, err = r.Next(wait, g.buf, g.rule.max-had)
		unreadable := errors.Is(err, hub.ErrUnreadable)
		g.progress.count(len(g.buf) > had, unreadable)
		if g.resting && len(g.buf) > 0 {
			g.resting, g.quiet = false, time.Now()
		}
		switch {
		case unreadable: // this one event; the reader is behind it
			g.report("read", err)
		case err != nil && (ctx.Err() != nil || wait.Err() == nil):
			return nil, err
		case len(g.buf) >= g.rule.min:
			return g.buf, nil
		case had == 0 && len(g.buf) > 0:
			first = time.Now()
		}
	}
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
