package processor

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/panics"
)

// prove tells that the lease is ours until then.
func (p *pump) prove(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until) && p.own.Err() == nil {
		p.until = until
		p.expiry.Reset(time.Until(until))
	}
}

// expire runs when the lease can be proven no longer.
func (p *pump) expire() {
	if !p.proven() {
		p.lose()
	}
}

func (p *pump) proven() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until)
}

// lose ends everything: the lease is another's, or may be.
func (p *pump) lose() { p.loseFor(ErrLeaseLost) }

func (p *pump) loseFor(why error) {
	p.mu.Lock()
	already := p.lost()
	p.until = time.Time{}
	p.expiry.Stop()
	if p.why == nil {
		p.why = why
	}
	p.cancelOwn(ErrLeaseLost) // under the lock, as in drain
	p.mu.Unlock()
	if !already {
		p.in.wake()
	}
}

func (p *pump) lost() bool { return p.own.Err() != nil }

// drain lets no further call start, and the contexts of those under way end with why after a
// while. Only the first reason counts, but who comes second can rely on it, too: the reason is set
// and the context ended under one lock.
func (p *pump) drain(why error, within time.Duration) {
	p.mu.Lock()
	if p.why != nil {
		p.mu.Unlock()
		return
	}
	p.why = why
	cause := publicCause(why)
	p.grace = time.AfterFunc(within, func() { p.cancelWork(cause) })
	p.cancelRead(cause)
	p.mu.Unlock()
	p.setState(Draining, nil)
}

// publicCause is what contexts end with: whatever our reason is, the partition goes to
// another instance, or the processor stops.
func publicCause(why error) error {
	for _, cause := range []error{ErrShutdown, ErrHandlerTimeout, ErrLeaseLost} {
		if errors.Is(why, cause) {
			return cause
		}
	}
	return ErrHandoff
}

// hurry shortens the time a drain has.
func (p *pump) hurry(within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.grace != nil {
		p.grace.Reset(within)
	}
}

// reason is why the partition is given up; nil while it is not.
func (p *pump) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// restart ends the reader's session, so that the next begins for this reason.
func (p *pump) restart(why error) {
	p.mu.Lock()
	cancel := p.reopen
	p.mu.Unlock()
	if cancel != nil {
		cancel(why)
	}
}

func (p *pump) setReopen(cancel context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reopen = cancel
}

// setLevel0 says that the reader is to show no epoch; one that shows one is opened anew.
func (p *pump) setLevel0() {
	p.mu.Lock()
	changed := !p.level0
	p.level0 = true
	p.mu.Unlock()
	if changed {
		p.restart(errReopen)
	}
}

// wait and took tell that the reader is being waited for, and no longer.
func (p *pump) wait() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting.IsZero() {
		p.waiting = now
	}
}

// took also takes in what the hub told beside its delivery. Waiting goes on while nothing comes.
func (p *pump) took(r hub.Reader) {
	newest, ok := r.LastEnqueued()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.buf) > 0 {
		p.waiting = time.Time{}
		p.newestAt = p.quiet
	}
	if ok && newest.Sequence > p.newest.Sequence {
		p.newest = newest
	}
}

// countUnread keeps count of what lies behind the last event read and will never be: nothing of it is waited for.
func (p *pump) countUnread(read bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read {
		p.unread = 0
	}
	if errors.Is(err, hub.ErrUnreadable) {
		p.unread++
	}
}

// handed moves the place behind which a new reader goes on.
func (p *pump) handed(last position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = last
}

func (p *pump) lastRead() position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// passed notes that everything up to here was handled.
func (p *pump) passed(pos position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pos.seq > p.finished.seq {
		p.finished = pos
	}
	if p.finished.seq > p.newest.Sequence {
		p.newest = hub.LastEnqueued{Sequence: pos.seq, Offset: pos.offset, Enqueued: pos.at}
	}
}

// setState changes the state and tells it. What is being given up stays so.
func (p *pump) setState(s State, err error) {
	p.mu.Lock()
	ending := p.why != nil && s != Draining && s != Closed && s != Stalled || p.state == Stalled && s == Draining
	same := p.state == s
	if err != nil || s == Running {
		p.err = err
	}
	if !ending && !same {
		p.state, p.since = s, time.Now()
	}
	p.mu.Unlock()
	if !ending && !same {
		p.notify(s)
	}
}

func (p *pump) notify(s State) {
	if p.in.cfg.OnState == nil {
		return
	}
	p.notifying.Lock()
	defer p.notifying.Unlock()
	st := p.status()
	st.State = s
	if err := panics.Call(func() error { p.in.cfg.OnState(st); return nil }); err != nil {
		p.in.reportError(&Error{p.id, "tell of a state", err})
	}
}

func (p *pump) status() Status {
	p.ledger.mu.Lock()
	saved := p.ledger.saved.Sequence
	p.ledger.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Partition: p.id, State: p.state, Since: p.since, Epoch: p.epoch,
		Done: p.finished.seq, Saved: saved, Attempt: p.attempt, Err: p.err}
	s.Lag, s.LagTime = lag(p.finished, p.before, p.newest)
	return s
}

// report tells of an error of this partition.
func (p *pump) report(doing string, err error) {
	p.reportError(&Error{p.id, doing, err})
}

func (p *pump) reportError(err error) {
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	p.in.reportError(err)
	if p.opened.Load() {
		panics.Call(func() error { p.worker.ProcessError(p.work, p.part, err); return nil })
	}
}
