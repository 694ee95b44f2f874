package processor

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/panics"
	"github.com/eventyard/eventyard/internal/sleep"
)

// pump works on one partition for as long as this instance owns it: it opens the reader, calls the
// handler, and ends by closing both. The coordinator starts it, informs it of renewals and losses,
// and waits for it. Prefetching behind the calls is the reader's work, which has up to
// Config.Prefetch events at hand.
//
// It has no lock: each of its parts has its own, and none is held while another is taken. What
// belongs to its goroutine alone stands at the end.
type pump struct {
	in    *instance
	id    string
	epoch int64
	part  *Partition
	done  chan struct{} // closed at the end of run

	ownership *ownership // how long we may
	control   *control   // what others ask of us
	progress  *progress  // how far we are
	health    *health    // what is shown of us
	calls     *calls     // the user's worker
	ledger    *ledger    // the checkpoint

	main     *scope // calls of the pump's goroutine
	gatherer gatherer
	gen      *generation // nil: the checkpoint is to be read
	refused  bool        // the hub knows no such position as the checkpoint, or Start, says
	lanes    *lanes      // nil: not begun, or none
	last     session
	trouble  troubles
}

// generation is the time between two moves of the checkpoint by somebody else, or until the hub is
// made anew. What was begun in one counts for nothing in the next. It never changes.
type generation struct {
	ctx    context.Context // ends with the ownership's read, too
	number int             // the ledger's
	from   hub.Position    // where it begins
}

// Why a session of a reader ends although nothing is wrong with the lease.
var (
	errReopen  = errors.New("the reader is opened anew")
	errRefused = errors.New("the hub knows a reader with a higher epoch")
	errNewHub  = errors.New("the hub was made anew")
	errLetGo   = errors.New("the loop over the partition's batches has ended")
)

// errOpen is what the worker's Open returned.
type errOpen struct{ error }

func (e errOpen) Unwrap() error { return e.error }

func newPump(in *instance, l Lease, trustedUntil time.Time, level0 bool) *pump {
	cfg := &in.cfg
	p := &pump{in: in, id: l.Partition, epoch: l.Epoch, done: make(chan struct{}),
		control: &control{level0: level0}, progress: newProgress(), calls: &calls{limit: cfg.HandlerTimeout}}
	p.part = &Partition{pump: p}
	p.health = &health{notify: p.notify, state: Starting, since: time.Now()}
	p.ownership = newOwnership(in.values, trustedUntil, func() {
		p.health.end()
		in.wake()
	})
	p.ledger = newLedger(ledgerConfig{store: in.store, group: in.group, lease: l, policy: cfg.Checkpoints,
		backoff: cfg.Backoff, timeout: cfg.storeTimeout(), open: p.ownership.read, report: p.report,
		onFenced: func() { p.ownership.lose(ErrLeaseLost) }, onMoved: func() { p.control.endGeneration(ErrMoved) }})
	p.main = p.calls.newScope()
	p.gatherer = gatherer{progress: p.progress, report: p.report,
		rule: gathering{min: cfg.MinBatch, max: cfg.MaxBatch, wait: cfg.MaxWait}}
	if cfg.Lanes > 1 {
		p.gatherer.rule.min = 1
	}
	return p
}

// awaiter is a reader that can be waited for without a goroutine, as one in the yard's own process:
// it calls wake once when Next has something to say, or ctx has ended.
type awaiter interface {
	Await(ctx context.Context, wake func())
}

// run keeps a reader open and the handler busy until the partition is given up. A pump that comes
// to rest has no goroutine until something comes or, where the reader knows no such wait, a new
// one: the calls of a handler have made the stack of this one large, and a goroutine that waits
// keeps its stack.
func (p *pump) run() {
	for read := p.ownership.read; read.Err() == nil; {
		err := p.session()
		if err == errResting {
			if r, ok := p.last.reader.(awaiter); ok {
				r.Await(p.last.ctx, func() { go p.run() })
			} else {
				go p.run()
			}
			return
		}
		if read.Err() != nil {
			break
		}
		// Where nothing comes to be read, a reader that stays open for long is all that can be had.
		if s := p.last; p.progress.lastRead() != s.before || !s.since.IsZero() && time.Since(s.since) > p.in.cfg.StallAfter/4 {
			p.trouble = troubles{}
		}
		if wait := p.recover(err, &p.trouble); wait > 0 {
			sleep.For(read, wait, nil)
		}
	}
	if p.last.end != nil { // it was given up at rest
		p.last.end()
	}
	p.stopLanes()
	p.ledger.stop()
	p.finish()
	close(p.done)
	p.in.wake()
}

// session is one reader's time.
type session struct {
	ctx    context.Context
	reader hub.Reader
	before position  // what was read last when it began
	since  time.Time // when the reader was at work; zero: it never was
	end    func()    // closes the reader; nil: none is open
}

// errResting: nothing is to be done before an event comes. The session goes on.
var errResting = errors.New("the partition rests")

// session opens a reader and the worker, or goes on with those that are open, and pumps until
// something is wrong or the partition rests.
func (p *pump) session() error {
	if p.last.end == nil {
		if err := p.openSession(); err != nil {
			return err
		}
	}
	pump := p.pumpInOrder
	if p.in.cfg.Lanes > 1 {
		pump = p.pumpLanes
	}
	s := &p.last
	err := pump(s.ctx, s.reader)
	if err == errResting {
		return err
	}
	err = ended(s.ctx, err)
	s.end()
	s.end = nil
	return err
}

func (p *pump) openSession() error {
	p.last = session{before: p.progress.lastRead()}
	ctx, cancel, r, err := p.attach()
	if err != nil {
		return err
	}
	closeReader := p.closeWith(r)
	end := func() {
		p.gatherer.patience.release()
		closeReader()
		cancel(nil)
	}
	if !p.calls.opened.Load() {
		err := p.ownership.mayCall(false) // to open the reader may have taken long
		if err != nil {
			end()
			return err
		}
		err = p.main.call(p.ownership.work, func(ctx context.Context) error {
			p.calls.worker = p.in.newWorker(p.part)
			return p.calls.worker.Open(ctx, p.part)
		})
		if err != nil {
			end()
			return errOpen{err}
		}
		p.calls.opened.Store(true)
	}
	p.health.set(Running, nil)
	p.gatherer.quiet, p.gatherer.resting = time.Now(), false
	p.last.ctx, p.last.reader, p.last.since, p.last.end = ctx, r, p.gatherer.quiet, end
	return nil
}

// attach reads the checkpoint, if that is still to be done, and opens a reader, whose context
// ends when it is to be opened anew. Only so many do that at once, so that an
// instance that gets a thousand partitions does not ask hub and store for all in one moment.
func (p *pump) attach() (context.Context, context.CancelCauseFunc, hub.Reader, error) {
	read := p.ownership.read
	var next context.Context
	if p.gen == nil {
		p.control.endGeneration(ErrMoved)
		p.stopLanes() // which may have to wait for calls
		next = p.control.newGeneration(read)
	}
	select {
	case p.in.attaching <- struct{}{}:
		defer func() { <-p.in.attaching }()
	case <-read.Done():
		return nil, nil, nil, context.Cause(read)
	}
	if p.gen == nil {
		gen, err := p.begin(next)
		if err != nil {
			return nil, nil, nil, err
		}
		p.gen = gen
	}
	from := p.gen.from
	if last := p.progress.lastRead(); last.seq >= 0 {
		from = hub.After(last.seq)
	}
	ctx, cancel := p.control.newSession(p.gen.ctx)
	opening, stop := context.WithTimeout(ctx, p.in.cfg.StallAfter)
	defer stop()
	r, err := p.in.hub.Open(opening, hub.ReadConfig{
		Partition: p.id, Group: p.in.group.Group, From: from, Epoch: hub.Exclusive(p.control.level(p.epoch)),
		Prefetch: p.in.cfg.Prefetch, Name: p.in.id,
	})
	if err != nil {
		defer cancel(nil)
		return nil, nil, nil, ended(ctx, &Error{p.id, "open reader", err})
	}
	p.in.opened.Store(true)
	p.progress.count(true, false)
	return ctx, cancel, r, nil
}

// ended prefers the cause of a context to what a call made of it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// begin starts a generation: it fences the owners before us, reads the checkpoint, and finds where
// to go on.
func (p *pump) begin(ctx context.Context) (*generation, error) {
	read := p.ownership.read
	if p.refused {
		_ = p.in.learn(read) // perhaps it is another hub by now; if not, what we know will do
	}
	hubID := p.in.hubID()
	c, err := p.ledger.begin(read, hubID)
	if err != nil {
		return nil, &Error{p.id, "read checkpoint", err}
	}
	gen := &generation{ctx: ctx, number: p.ledger.current()}
	asking, cancel := context.WithTimeout(read, p.in.cfg.StallAfter)
	defer cancel()
	info, err := p.in.hub.Partition(asking, p.id)
	if err != nil {
		return nil, &Error{p.id, "ask for the partition's bounds", err}
	}
	info.Partition = p.id
	var b beginning
	if p.refused { // what the hub thinks of it counts more than what we make of it
		p.refused = false
		trouble := ErrBadCheckpoint
		if c.Sequence < 0 && c.Offset == "" {
			trouble = ErrBadStart
		}
		b, err = outOfRange(trouble, info, p.in.cfg)
	} else {
		err = panics.Call(func() (err error) { // Start is the user's
			b, err = begin(c, hubID, info, p.in.cfg)
			return err
		})
	}
	if err != nil {
		return nil, &Error{p.id, "find where to go on", err}
	}
	if b.trouble != nil {
		p.report("find where to go on", b.trouble)
	}
	if b.pin {
		if err := p.ledger.pin(read, b.before); err != nil {
			return nil, &Error{p.id, "keep where to go on", err}
		}
	}
	p.ledger.countFrom(b.before)
	p.progress.begin(gen.number, b, info, time.Now())
	p.health.startOver()
	gen.from = b.from
	return gen, nil
}

// closeWith closes the reader at the end of a session, and at once when the lease is lost:
// a handler that takes its time must not keep it open.
func (p *pump) closeWith(r hub.Reader) func() {
	closed := make(chan struct{})
	closeReader := func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(p.in.values, p.in.cfg.storeTimeout())
		defer cancel()
		if err := r.Close(ctx); err != nil && !errors.Is(err, hub.ErrClosed) {
			p.in.cfg.Log.Debug("a reader did not close well", "partition", p.id, "error", err)
		}
	}
	stop := context.AfterFunc(p.ownership.own, closeReader)
	return func() {
		if stop() {
			closeReader()
		}
		<-closed
	}
}

// pumpInOrder reads and calls, one batch after the other.
func (p *pump) pumpInOrder(ctx context.Context, r hub.Reader) error {
	for {
		events, err := p.gatherer.next(ctx, r)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			p.ledger.busy()
		} else if p.ledger.idle(true); p.mayRest() {
			p.gatherer.rest()
			return errResting
		}
		if err := p.deliver(p.main, p.batch(events)); err != nil {
			return err
		}
		p.gatherer.done()
	}
}

// mayRest reports whether an idle partition need not be called. A worker of ours that wants the
// empty call only now and then says when.
func (p *pump) mayRest() bool {
	if !p.in.cfg.CallWhenIdle {
		return true
	}
	w, ok := p.calls.worker.(interface{ WantsIdleCalls() bool })
	return ok && !w.WantsIdleCalls()
}

func (p *pump) batch(events []event.Event) *Batch {
	b := &Batch{Events: events, Partition: p.part, gen: p.gen, end: nowhere}
	if n := len(events); n > 0 {
		b.end = positionOf(&events[n-1])
	}
	return b
}

// pumpLanes reads and deals out. The empty call is made only when no other is under way.
func (p *pump) pumpLanes(ctx context.Context, r hub.Reader) error {
	if p.lanes == nil {
		p.lanes = startLanes(p)
	}
	for {
		if err := p.lanes.waitForRoom(ctx); err != nil {
			return err
		}
		events, err := p.gatherer.next(ctx, r)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			p.ledger.busy()
			p.lanes.deal(events)
			p.progress.hand(positionOf(&events[len(events)-1]))
			p.gatherer.done()
			continue
		}
		idle := p.lanes.idle()
		p.ledger.idle(idle)
		if idle && p.mayRest() {
			p.gatherer.rest()
			return errResting
		}
		if idle {
			if err := p.deliver(p.main, p.batch(nil)); err != nil {
				return err
			}
		}
		p.gatherer.done()
	}
}

// stopLanes waits for the calls of the lanes, whose context has ended.
func (p *pump) stopLanes() {
	if p.lanes != nil {
		p.lanes.running.Wait()
		p.lanes = nil
		p.calls.forgetLanes()
	}
}

// finish ends the pump: the reader is closed already, the last call has returned. The worker is
// closed, and what is marked is written, before the lease is released.
func (p *pump) finish() {
	t, cfg := p.ownership, &p.in.cfg
	why := t.reason()
	p.calls.closing.Store(true)
	if p.calls.opened.Load() {
		within, parent := cfg.Stop/4, t.own
		if errors.Is(why, ErrHandoff) {
			within = cfg.Handoff
		}
		if t.lost() {
			parent = p.in.values // it may try all the same
		}
		ctx, cancel := context.WithTimeoutCause(parent, max(within, time.Second), publicCause(why))
		err := p.main.call(ctx, func(ctx context.Context) error { return p.calls.worker.Close(ctx, p.part, t.closeReason()) })
		cancel()
		if err != nil {
			p.report("close", err)
		}
	}
	if !t.lost() {
		ctx, cancel := context.WithTimeout(t.own, cfg.storeTimeout())
		if err := p.ledger.flush(ctx); err != nil {
			p.report("save checkpoint before the partition is given up", err)
		}
		cancel()
	}
	t.end()
	p.health.set(Closed, nil)
}

// drain gives the partition up in good order.
func (p *pump) drain(why error, within time.Duration) {
	if p.ownership.drain(why, within) {
		p.health.set(Draining, nil)
	}
}

// notify calls OnState. It is called by health, one state at a time.
func (p *pump) notify(s State) {
	if p.in.cfg.OnState == nil {
		return
	}
	st := p.status()
	st.State = s
	if err := panics.Call(func() error { p.in.cfg.OnState(st); return nil }); err != nil {
		p.in.reportError(&Error{p.id, "report a state", err})
	}
}

func (p *pump) status() Status {
	s := Status{Partition: p.id, Epoch: p.epoch, Saved: p.ledger.savedUpTo()}
	s.Done, s.Lag, s.LagTime = p.progress.lag()
	p.health.fill(&s)
	return s
}

// report is for an error of this partition.
func (p *pump) report(doing string, err error) {
	p.reportError(&Error{p.id, doing, err})
}

func (p *pump) reportError(err error) {
	p.health.fault(err)
	p.in.reportError(err)
	if p.calls.opened.Load() {
		panics.Call(func() error { p.calls.worker.ProcessError(p.ownership.work, p.part, err); return nil })
	}
}

// hasEnded reports whether the pump's goroutine has.
func (p *pump) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
