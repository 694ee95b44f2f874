package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// group is what is committed together: encoded batches, and who waits for them. It is
// used again; a partition without work holds none.
type group struct {
	buf     []byte
	tickets []*ticket
	// shared says that it was made durable by the journal; its segment is synced later.
	shared bool
}

// ticket implements eventlog.Receipt. It is used again after Wait.
type ticket struct {
	p     *partition
	info  segment.Info
	bytes int // room in the segment
	// settled has room for the one outcome, so that settling never waits.
	settled chan outcome
}

type outcome struct{ err error }

// Start has somebody commit; see eventlog.Receipt.
func (t *ticket) Start() {
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fill != nil && !p.committing && p.waiters == 0 {
		p.committing = true
		p.startDrainLocked()
	}
}

// Wait returns when the batch is durable; see eventlog.Receipt. The waiter commits by
// itself if nobody else does.
func (t *ticket) Wait(ctx context.Context) (eventlog.Appended, error) {
	select {
	case o := <-t.settled:
		return t.finish(o)
	default:
	}
	t.p.leadIfIdle()
	select {
	case o := <-t.settled:
		return t.finish(o)
	case <-ctx.Done():
	}
	select {
	case o := <-t.settled: // both at once: what is known is better than what is not
		return t.finish(o)
	default:
		return eventlog.Appended{}, context.Cause(ctx) // settled later; the ticket is left to it
	}
}

func (t *ticket) finish(o outcome) (eventlog.Appended, error) {
	p := t.p
	done := eventlog.Appended{First: eventlog.Sequence(t.info.First), Time: time.UnixMilli(t.info.Time).UTC()}
	t.p = nil
	p.e.tickets.Put(t)
	if o.err != nil {
		return eventlog.Appended{}, o.err
	}
	return done, nil
}

// leadIfIdle commits one group if nobody is committing.
func (p *partition) leadIfIdle() {
	p.mu.Lock()
	if p.committing || p.fill == nil || p.waiters > 0 {
		p.mu.Unlock()
		return
	}
	p.committing = true
	p.mu.Unlock()
	p.commitGroup()
	p.mu.Lock()
	p.releaseTokenLocked()
	p.mu.Unlock()
}

// startDrainLocked hands the token to a goroutine that commits until nothing is left.
// Close waits for it.
func (p *partition) startDrainLocked() {
	p.e.committers.Add(1)
	go func() {
		defer p.e.committers.Done()
		for more := true; more; {
			p.commitGroup()
			p.mu.Lock()
			if more = p.fill != nil && p.waiters == 0; !more { // who waits for the token sees to what is left
				p.committing = false
				p.idle.Broadcast()
			}
			p.mu.Unlock()
		}
	}()
}

// commitGroup writes, syncs and settles what has gathered. The caller holds the token.
func (p *partition) commitGroup() {
	p.e.busy.Add(1)
	defer p.e.busy.Add(-1)
	p.gatherer.wait(p.waiting)
	p.mu.Lock()
	g, broken := p.fill, p.broken
	p.fill = nil
	p.makeRoomLocked()
	p.mu.Unlock()
	if g == nil {
		return
	}
	p.gatherer.took(len(g.tickets))
	err := error(eventlog.ErrFenced)
	if !broken {
		err = p.write(g)
	}
	p.mu.Lock()
	if err != nil {
		p.failLocked(g, err)
	} else {
		p.succeedLocked(g)
	}
	p.mu.Unlock()
	clear(g.tickets)
	if cap(g.buf) > 2*maxPendingBytes { // what many batches submitted together needed is not kept
		g.buf = nil
	}
	g.tickets, g.buf, g.shared = g.tickets[:0], g.buf[:0], false
	p.e.groups.Put(g)
}

// waiting is how many batches have gathered.
func (p *partition) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fill == nil {
		return 0
	}
	return len(p.fill.tickets)
}

// write puts a group behind the active segment, rolling to a new one first if it is full.
func (s *segments) write(g *group) error {
	offset := s.active.tail.Offset
	if offset > segment.HeaderBytes && offset+int64(len(g.buf)) > s.segmentBytes() {
		if err := s.roll(false); err != nil {
			return fmt.Errorf("begin a segment: %w", err)
		}
	}
	a := s.active
	if a.sealed {
		if err := s.unseal(a); err != nil {
			return &refusal{err}
		}
	}
	offset = a.tail.Offset
	segment.Seal(g.buf, a.head.Salt, offset, a.durable.Load())
	handle, err := a.use()
	if err != nil {
		return &refusal{err}
	}
	if _, err = handle.WriteAt(g.buf, offset); err == nil {
		a.written.Store(offset + int64(len(g.buf))) // while it is in use, or it might be closed before its sync
	}
	a.unuse()
	if err != nil {
		return s.takeBack(offset, fmt.Errorf("write segment: %w", err))
	}
	if s.e.cfg.Sync != Always {
		return nil
	}
	return s.makeDurable(a, offset, g)
}

// makeDurable syncs a group that was written: by way of the journal where others are
// syncing too, by itself otherwise.
func (s *segments) makeDurable(a *file, offset int64, g *group) error {
	if len(g.buf) < largeWrite && int(s.e.busy.Load()) >= s.e.cfg.journalFrom {
		err := s.e.journal.commit(s, a, offset, g.buf)
		g.shared = err == nil
		if !errors.Is(err, errJournalFull) {
			return err
		}
	}
	end := offset + int64(len(g.buf))
	s.zeroAhead(end)
	a.allocated = max(a.allocated, end)
	s.e.syncs <- struct{}{}
	defer func() { <-s.e.syncs }()
	if err := a.sync(); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	return nil
}

func (e *Engine) timedSync(handle vfs.File) error {
	began := time.Now()
	err := handle.Sync()
	e.metrics.syncSeconds.Observe(time.Since(began).Seconds())
	return err
}

// refusal is a failure after which it is certain that nothing was stored and the
// partition can be written as before.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// takeBack makes sure that nothing of a failed write can be found later. Where it
// cannot, the failure stays what it was: the end of this segment.
func (s *segments) takeBack(offset int64, err error) error {
	if !vfs.IsNoSpace(err) {
		return err
	}
	s.e.spares.purge()
	a := s.active
	if a.do(func(handle vfs.File) error { return handle.Truncate(offset) }) != nil || a.sync() != nil {
		return err
	}
	a.allocated = offset
	return &refusal{err}
}

// succeedLocked makes a group readable and settles its receipts.
func (p *partition) succeedLocked(g *group) {
	a := p.active
	before := p.visible.next
	for _, t := range g.tickets {
		a.index = a.tail.Take(a.index, t.info, int64(t.bytes))
	}
	p.visible = endOf(a.tail)
	p.noteLocked()
	m := p.e.metrics
	m.groups.Inc()
	m.batches.Add(float64(len(g.tickets)))
	m.events.Add(float64(p.visible.next - before))
	m.bytes.Add(float64(len(g.buf)))
	p.wakeReadersLocked()
	g.settle(nil)
}

// failLocked refuses a group, and what has gathered behind it, since that was numbered after it.
func (p *partition) failLocked(g *group, err error) {
	var refused *refusal
	switch {
	case errors.Is(err, eventlog.ErrFenced):
	case errors.As(err, &refused):
		if err = classify(err); !errors.Is(err, eventlog.ErrNoSpace) {
			err = fmt.Errorf("%w: %w", eventlog.ErrFenced, err)
		}
	default:
		p.fenceLocked(err)
		err = fmt.Errorf("%w: %w", eventlog.ErrUncertain, err)
	}
	if vfs.IsNoSpace(err) {
		p.e.noSpace(err)
	}
	g.settle(fmt.Errorf("append %s at %d: %w", p.id, p.visible.next, err))
	if p.fill != nil {
		p.fill.settle(fmt.Errorf("append %s: %w", p.id, eventlog.ErrFenced))
		p.fill = nil
		p.makeRoomLocked()
	}
	p.next, p.lastTime = p.visible.next, p.visible.lastTime
}

// settle gives everyone who waits for the group its outcome.
func (g *group) settle(err error) {
	for _, t := range g.tickets {
		t.settled <- outcome{err}
	}
}

// classify gives a full disk the contract's name.
func classify(err error) error {
	if vfs.IsNoSpace(err) {
		return fmt.Errorf("%w: %w", eventlog.ErrNoSpace, err)
	}
	return err
}

// noSpace counts a refusal, and reports it to the operator once in a while.
func (e *Engine) noSpace(err error) {
	e.metrics.refusals.Inc()
	now := time.Now().Unix()
	if last := e.reportedNoSpace.Load(); now-last >= 30 && e.reportedNoSpace.CompareAndSwap(last, now) {
		e.log.Error("storage is full: events are refused until there is room; retention and reading go on", "error", err)
	}
}
