package processor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/panics"
)

// pump works on one partition for as long as this instance owns it: it opens the
// reader, calls the handler, and ends by closing both. The coordinator starts it, tells it of renewals and
// losses, and waits for it. Prefetching behind the calls is the reader's work, which has
// up to Config.Prefetch events at hand.
//
// Three contexts, each ending with the one before:
//
//	own   the lease is ours, as far as can be proven   ends with ErrLeaseLost
//	work  what calls see                               ends also when the time to drain is up
//	read  new calls may start                          ends also as soon as draining begins
type pump struct {
	in      *instance
	id      string
	epoch   int64
	part    *Partition
	worker  Worker // made by openWorker; others look at opened before
	ledger  *ledger
	done    chan struct{} // closed at the end of run
	closing atomic.Bool   // the last call but Close has returned
	opened  atomic.Bool   // the worker's Open has returned nil
	taken   atomic.Bool   // the call under way has the mark, to store it by itself

	own, work, read                   context.Context
	cancelOwn, cancelWork, cancelRead context.CancelCauseFunc

	// Used by run's goroutine only, but for gen and generation, which lanes read.
	gen        context.Context // ends with read, and when the checkpoint was moved
	main       *scope
	patience   patience
	buf        []event.Event
	quiet      time.Time // when the last call ended
	running    time.Time // since when the session has a reader; zero: it has none
	from       hub.Position
	hubID      string
	begun      bool // the checkpoint was read
	generation int  // of the ledger's, in which it was
	refused    bool // the position is none that the hub knows
	lanes      *lanes

	notifying sync.Mutex // held while OnState is told, so that it hears in order

	mu        sync.Mutex // guards what follows
	until     time.Time  // the lease is proven to here
	expiry    *time.Timer
	grace     *time.Timer // ends work when the time to drain is up
	why       error       // why it is given up; nil: it is not
	reopen    context.CancelCauseFunc
	cancelGen context.CancelCauseFunc
	anchored  bool          // before is certain
	check     chan struct{} // closed when the coordinator has looked at the lease
	scopes    []*scope
	level0    bool
	state     State
	since     time.Time
	err       error
	attempt   int
	retrying  int
	before    position // the one before the first that was read
	current   position // end of the batch that is handled
	last      position // newest that was handed over
	finished  position // newest handled
	reachedIn int      // the ledger's generation that current and finished are of
	newest    hub.LastEnqueued
	newestAt  time.Time // when that was learnt
	behind    time.Time // since when events are known to be there that were not read
	waiting   time.Time // since when the reader is being waited for; zero: it is not
	reopened  time.Time // by the watchdog
	unread    int64     // events since the last one read that cannot be decoded
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

func newPump(in *instance, l Lease, until time.Time, level0 bool) *pump {
	p := &pump{in: in, id: l.Partition, epoch: l.Epoch, done: make(chan struct{}), until: until,
		state: Starting, since: time.Now(), level0: level0, before: nowhere, last: nowhere, finished: nowhere, current: nowhere,
		newest: hub.LastEnqueued{Sequence: -1}}
	p.own, p.cancelOwn = context.WithCancelCause(in.values)
	p.work, p.cancelWork = context.WithCancelCause(p.own)
	p.read, p.cancelRead = context.WithCancelCause(p.work)
	p.part = &Partition{pump: p}
	p.main = newScope(p)
	p.ledger = newLedger()
	p.ledger.store, p.ledger.group, p.ledger.lease = in.store, in.group, l
	p.ledger.policy, p.ledger.backoff, p.ledger.timeout = in.cfg.Checkpoints, in.cfg.Backoff, in.cfg.storeTimeout()
	p.ledger.report, p.ledger.onFenced, p.ledger.onMoved = p.report, p.lose, func() { p.endGen(ErrMoved) }
	p.expiry = time.AfterFunc(time.Until(until), p.expire)
	return p
}

// run is the pump's goroutine.
func (p *pump) run() {
	defer p.in.wake()
	defer close(p.done)
	p.notify(Starting)
	keeping := make(chan struct{})
	go func() {
		defer close(keeping)
		if p.in.cfg.Checkpoints.deferred() {
			p.ledger.keep(p.read)
		}
	}()
	p.serve()
	p.stopLanes()
	<-keeping
	p.finish()
}

// serve keeps a reader open and the handler busy until the partition is given up.
func (p *pump) serve() {
	var trouble troubles
	for p.read.Err() == nil {
		before := p.lastRead()
		p.running = time.Time{}
		err := p.session()
		if p.read.Err() != nil {
			return
		}
		// Where nothing comes to be read, a reader that stays open for long is all that can be had.
		if p.lastRead() != before || !p.running.IsZero() && time.Since(p.running) > p.in.cfg.StallAfter/4 {
			trouble = troubles{}
		}
		if wait := p.recover(err, &trouble); wait > 0 {
			sleep(p.read, wait)
		}
	}
}

// session opens a reader and pumps until something is wrong.
func (p *pump) session() error {
	ctx, cancel, r, err := p.attach()
	if err != nil {
		return err
	}
	defer cancel(nil)
	defer p.closeWith(r)()
	if err := p.openWorker(); err != nil {
		return err
	}
	p.setState(Running, nil)
	p.running = time.Now()
	p.quiet = p.running
	defer p.patience.release()
	if p.in.cfg.Lanes > 1 {
		return ended(ctx, p.pumpLanes(ctx, r))
	}
	return ended(ctx, p.pumpInOrder(ctx, r))
}

// attach reads the checkpoint, if that is still to be done, and opens a reader, whose context
// ends when it is to be opened anew. Only so many do that at once, so that an
// instance that gets a thousand partitions does not ask hub and store for all in one moment.
func (p *pump) attach() (context.Context, context.CancelCauseFunc, hub.Reader, error) {
	if !p.begun {
		p.endGeneration() // which may have to wait for calls
	}
	select {
	case p.in.attaching <- struct{}{}:
		defer func() { <-p.in.attaching }()
	case <-p.read.Done():
		return nil, nil, nil, context.Cause(p.read)
	}
	if !p.begun {
		if err := p.begin(); err != nil {
			return nil, nil, nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(p.gen)
	p.setReopen(cancel)
	r, err := p.openReader(ctx)
	if err != nil {
		defer cancel(nil)
		return nil, nil, nil, ended(ctx, err)
	}
	p.in.opened.Store(true)
	p.countUnread(true, nil) // the reader finds them again
	return ctx, cancel, r, nil
}

// ended prefers the cause of a context to what a call made of it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// begin fences the owners before us, reads the checkpoint, and finds where to go on.
func (p *pump) begin() error {
	if p.refused {
		_ = p.in.learn(p.read) // perhaps it is another hub by now; if not, what we know will do
	}
	p.hubID = p.in.hubID()
	c, err := p.ledger.open(p.read, p.hubID)
	if err != nil {
		return &Error{p.id, "read checkpoint", err}
	}
	p.generation = p.ledger.current()
	ctx, cancel := context.WithTimeout(p.read, p.in.cfg.StallAfter)
	defer cancel()
	info, err := p.in.hub.Partition(ctx, p.id)
	if err != nil {
		return &Error{p.id, "ask for the partition's bounds", err}
	}
	info.Partition = p.id
	b, err := p.beginning(c, info)
	if err != nil {
		return &Error{p.id, "find where to go on", err}
	}
	if b.trouble != nil {
		p.report("find where to go on", b.trouble)
	}
	if b.pin {
		if err := p.ledger.pin(p.read, b.before); err != nil {
			return &Error{p.id, "keep where to go on", err}
		}
	}
	p.ledger.countFrom(b.before)
	p.from, p.begun = b.from, true
	p.learn(b, info)
	return nil
}

// endGeneration waits for what the lanes have at hand, and starts afresh.
func (p *pump) endGeneration() {
	p.endGen(ErrMoved)
	p.stopLanes()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gen, p.cancelGen = context.WithCancelCause(p.read)
}

// endGen lets the partition start again from its checkpoint. It is called by whoever finds out
// why.
func (p *pump) endGen(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancelGen != nil {
		p.cancelGen(why)
	}
}

func (p *pump) beginning(c Checkpoint, info hub.PartitionInfo) (beginning, error) {
	if p.refused { // what the hub thinks of it counts more than what we make of it
		p.refused = false
		trouble := ErrBadCheckpoint
		if c.Sequence < 0 && c.Offset == "" {
			trouble = ErrBadStart
		}
		return outOfRange(trouble, info, p.in.cfg)
	}
	var b beginning
	err := panics.Call(func() (err error) { // Start is the user's
		b, err = begin(c, p.hubID, info, p.in.cfg)
		return err
	})
	return b, err
}

// learn takes in where the partition begins and ends.
func (p *pump) learn(b beginning, info hub.PartitionInfo) {
	before := b.before
	p.mu.Lock()
	defer p.mu.Unlock()
	first := info.First - 1
	if info.Empty {
		first = info.Last
	}
	if before.seq < first {
		before = position{seq: first}
	}
	p.before, p.last, p.finished, p.retrying, p.behind = before, nowhere, nowhere, 0, time.Time{}
	p.newest = hub.LastEnqueued{Sequence: info.Last, Offset: info.LastOffset, Enqueued: info.LastEnqueued}
	p.newestAt, p.anchored, p.reachedIn = time.Now(), b.anchored, p.generation
}

func (p *pump) openReader(ctx context.Context) (hub.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, p.in.cfg.StallAfter)
	defer cancel()
	r, err := p.in.hub.Open(ctx, hub.ReadConfig{
		Partition: p.id, Group: p.in.group.Group, From: p.resume(), Epoch: p.level(),
		Prefetch: p.in.cfg.Prefetch, Name: p.in.id,
	})
	if err != nil {
		return nil, &Error{p.id, "open reader", err}
	}
	return r, nil
}

// resume is behind the last event read, or where the checkpoint says.
func (p *pump) resume() hub.Position {
	if last := p.lastRead(); last.seq >= 0 {
		return hub.After(last.seq)
	}
	return p.from
}

// level is what the reader shows to the hub: the lease's epoch, or 0 where owners are about
// that show nothing else.
func (p *pump) level() *int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	level := p.epoch
	if p.level0 {
		level = 0
	}
	return &level
}

// closeWith closes the reader at the end of a session, and at once when the lease is lost:
// a handler that takes its time must not keep it open.
func (p *pump) closeWith(r hub.Reader) func() {
	closed := make(chan struct{})
	stop := context.AfterFunc(p.own, func() {
		defer close(closed)
		p.closeReader(r)
	})
	return func() {
		if !stop() {
			<-closed
			return
		}
		p.closeReader(r)
	}
}

func (p *pump) closeReader(r hub.Reader) {
	ctx, cancel := context.WithTimeout(p.in.values, p.in.cfg.storeTimeout())
	defer cancel()
	if err := r.Close(ctx); err != nil && !errors.Is(err, hub.ErrClosed) {
		p.in.cfg.Log.Debug("a reader did not close well", "partition", p.id, "error", err)
	}
}

func (p *pump) openWorker() error {
	if p.opened.Load() {
		return nil
	}
	if err := p.mayCall(false); err != nil { // to open the reader may have taken long
		return err
	}
	err := p.main.call(p.work, func(ctx context.Context) error {
		p.worker = p.in.newWorker(p.part)
		return p.worker.Open(ctx, p.part)
	})
	if err != nil {
		return errOpen{err}
	}
	p.opened.Store(true)
	return nil
}

// pumpInOrder reads and calls, one batch after the other.
func (p *pump) pumpInOrder(ctx context.Context, r hub.Reader) error {
	for {
		events, err := p.gather(ctx, r, p.in.cfg.MinBatch)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			p.ledger.idle()
			if !p.in.cfg.CallWhenIdle {
				p.quiet = time.Now()
				continue
			}
		}
		if err := p.deliver(p.main, p.batch(events)); err != nil {
			return err
		}
		p.quiet = time.Now()
	}
}

// gather reads a batch; an empty one means that nothing has come for MaxWait.
func (p *pump) gather(ctx context.Context, r hub.Reader, least int) ([]event.Event, error) {
	cfg := &p.in.cfg
	g := gathering{min: least, max: cfg.MaxBatch, wait: cfg.MaxWait}
	var first time.Time
	p.buf = p.buf[:0]
	p.wait()
	defer p.took(r)
	for {
		enough, until := g.enough(len(p.buf), p.quiet, first, time.Now())
		if enough {
			return p.buf, nil
		}
		wait := p.patience.until(ctx, until)
		had := len(p.buf)
		var err error
		p.buf, err = r.Next(wait, p.buf, g.max-had)
		p.countUnread(len(p.buf) > had, err)
		switch {
		case errors.Is(err, hub.ErrUnreadable): // of this one event; the reader is behind it
			p.report("read", err)
		case err != nil && (ctx.Err() != nil || wait.Err() == nil):
			return nil, err
		case len(p.buf) >= least:
			return p.buf, nil
		case had == 0 && len(p.buf) > 0:
			first = time.Now()
		}
	}
}
