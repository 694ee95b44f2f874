package functions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/panics"
)

// call is one call of a handler, and the context that the handler sees. That ends with the
// processor's, at the deadline, and when the call is over. Each moves the deadline on with every
// event, which no context of the library can do; that is why it is one of its own.
type call struct {
	context.Context
	cancel context.CancelCauseFunc
	fn     *function // nil: it is somebody's test of a handler
	batch  *Batch
	began  time.Time
	until  atomic.Int64 // the deadline, in nanoseconds from began; 0: none
	target atomic.Int32 // of the event that Each handles, from 1; 0: it is not Each
	timer  *time.Timer  // ends it at the deadline
	// leaving is closed when Each is to begin no further event; nil: it is not heeded.
	leaving <-chan struct{}

	// Written by the handler's goroutine, read when it has returned.
	finished int      // Each: so many events were done while the context was alive
	partial  *Results // Each: what it returned because the context had ended

	mu       sync.Mutex
	over     bool        // guarded by mu: the handler has returned
	warning  *time.Timer // guarded by mu: tells of a handler that does not
	patience time.Duration
}

// callKey is where a call finds itself in contexts below it.
type callKey struct{}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func (c *call) Deadline() (time.Time, bool) {
	if d := c.until.Load(); d > 0 {
		return c.began.Add(time.Duration(d)), true
	}
	return c.Context.Deadline()
}

func (c *call) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == ErrTimeout {
		return context.DeadlineExceeded
	}
	return err
}

// begin is Each's next event: false if it is not to be tried.
func (c *call) begin(target int) bool {
	waits := isClosed(c.leaving) || c.fn != nil && c.fn.open.Load() // what is not begun is to wait
	if c.Err() != nil || target > 0 && waits {
		return false
	}
	c.target.Store(int32(target) + 1)
	if target > 0 && c.timer != nil {
		c.until.Store(int64(time.Since(c.began) + c.fn.Timeout))
		c.timer.Reset(c.fn.Timeout)
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// outcome is what came of a call.
type outcome struct {
	judgement
	err      error     // as the handler returned it, or made of its panic
	began    int64     // by the endpoint's time
	clock    time.Time // when it began, by the clock
	timedOut bool
	// cancelled: the partition was taken away meanwhile, and nothing counts but that so many
	// events, the first ones, are done.
	cancelled bool
	finished  int
}

// invoke calls the handler. It returns when the handler does, whatever becomes of the context:
// events are never handled twice at once. When leaving is closed Each begins no further event.
func (f *function) invoke(ctx context.Context, b *Batch, leaving <-chan struct{}) outcome {
	ctx, span := f.span(ctx, b)
	inner, cancel := context.WithCancelCause(ctx)
	c := &call{Context: inner, cancel: cancel, fn: f, batch: b, began: time.Now(), leaving: leaving, patience: stubborn}
	c.until.Store(int64(f.Timeout))
	c.timer = time.AfterFunc(f.Timeout, c.expire)
	defer func() { // the handler has returned
		c.timer.Stop()
		c.cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		if c.warning != nil {
			c.warning.Stop()
		}
	}()
	at := f.needs.begin()
	out := c.outcome(ctx, panics.Call(func() error { return f.handler(c, b) }))
	out.began, out.clock = at, c.began
	if !out.cancelled && out.succeeded(len(b.Events)) {
		f.needs.succeeded(at, c.began)
	}
	f.counts.call(b, out)
	out.end(span)
	if f.onCall != nil {
		f.onCall(b, Ended{Began: c.began, Took: time.Since(c.began), Err: out.err, Cancelled: out.cancelled, judgement: out.judgement})
	}
	return out
}

// outcome tells a time-out, which is a failed attempt, from a cancellation, which is none (F2): the
// first of them counts. Only Each can be believed after that, and only if what it said has come
// through as it was: a middleware may have undone all of it.
func (c *call) outcome(parent context.Context, err error) outcome {
	out := outcome{err: err, timedOut: context.Cause(c.Context) == ErrTimeout}
	out.cancelled = !out.timedOut && parent.Err() != nil
	switch {
	case out.cancelled:
		if c.credible(err) {
			out.finished = c.finished
		}
	case out.timedOut && !c.credible(err):
		out.err = fmt.Errorf("%w: no end within %v", late(err), c.fn.Timeout)
		out.judgement = judgement{whole: judgeOne(out.err)}
		if !isDown(out.whole.Verdict) { // that nothing was reached may be believed: it does not say that anything is done
			out.whole = triage.Result{Verdict: triage.Failed, Reason: reason(out.err)}
		}
	default:
		out.judgement = judge(err, c.batch.Events)
	}
	return out
}

func (c *call) credible(err error) bool {
	if err == nil {
		return c.finished == len(c.batch.Events)
	}
	r := (*Results)(nil)
	return errors.As(err, &r) && r == c.partial
}

// late is the error of what was under way when the time was up.
func late(err error) error {
	down := (*unavailable)(nil)
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	switch {
	case err == nil, ended && !errors.As(err, &down):
		return ErrTimeout
	case errors.Is(err, ErrTimeout):
		return err
	}
	return fmt.Errorf("%w: %w", ErrTimeout, err)
}

// stackOf is the stack of a panic, if it was one.
func stackOf(err error) string {
	if p := (*PanicError)(nil); errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}

// stubborn is how long after its deadline a call is first complained of.
const stubborn = 10 * time.Second

// expire ends the context at the deadline.
func (c *call) expire() {
	c.cancel(ErrTimeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over && c.warning == nil {
		c.warning = time.AfterFunc(c.patience, c.warn)
	}
}

// warn tells of a handler that does not heed the end of its context, now and then for as long as it
// does not.
func (c *call) warn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.fn.log.Warn("a call ignores the end of its context and blocks its partition: let the handler return when ctx.Done() is closed",
		keyPartition, c.batch.Partition, "first", c.batch.Events[0].Sequence, "late", c.patience)
	c.patience *= 2
	c.warning.Reset(c.patience / 2)
}
