package amqp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// Link is one link.
type Link struct {
	session *session
	// request is what is kept of the peer's attach. asked is all of it until the attach has
	// been answered, then the same.
	request *wire.Attach
	asked   atomic.Pointer[wire.Attach]

	// in or out is set when the link has been accepted, as the peer sends or receives.
	in  *incoming
	out *outgoing
	// demand is of a source that runs on demand.
	demand demand

	terminus interface{ Closed() } // nil until the link has been accepted
	closed   sync.Once             // around terminus.Closed

	// heir is an attach that waits for the handle, still encoded. The reading goroutine's alone.
	heir []byte

	// Guarded by Conn.mu.
	state linkState
	// early is set by a Detach that came before the attach was answered.
	early *wire.Detach
}

// linkState is how far a link is.
type linkState uint8

const (
	// linkAttaching: the handler is being asked.
	linkAttaching linkState = iota
	linkAttached
	// linkEnded: nothing is sent on it any more. Our detach is in the output, or will be
	// when the terminus has been closed; frames of the peer's are ignored until its detach.
	linkEnded
)

// Request is the peer's attach. It is not to be changed. When Attach has returned only the
// name, the handle and the role are left: the rest may take much memory.
func (l *Link) Request() *wire.Attach { return l.asked.Load() }

// forget drops what was needed to answer the attach.
func (l *Link) forget() { l.asked.Store(l.request) }

// Conn is the link's connection.
func (l *Link) Conn() *Conn { return l.session.conn }

// Session identifies the link's session within the connection.
func (l *Link) Session() uint16 { return l.session.channel }

// run is a source's goroutine.
func (l *Link) run(source Source) { l.ended(l.runOnce(source)) }

// runOnce is a source's Run. Its panic ends the connection.
func (l *Link) runOnce(source Source) (err error) {
	c := l.session.conn
	if failed := c.guarded("Run", func() { err = source.Run(l.out.ctx, l) }); failed != nil {
		c.refuse(failed)
		c.Close(asError(failed))
	}
	return err
}

// ended ends the link with what its source's Run returned.
func (l *Link) ended(err error) {
	c := l.session.conn
	l.closeTerminus()
	if err != nil && l.out.ctx.Err() == nil {
		c.log.Log(c.ctx, levelOf(err), "AMQP link ended", "link", l.request.Name, "error", err)
	}
	l.Detach(asError(err))
}

// Wake has a source that runs on demand look for something to send, from any goroutine: its Run
// begins after this, or once more if it runs. On a link that has ended it does nothing. It takes no
// lock and never waits, so that whoever has something new may call it with locks of his own held.
func (l *Link) Wake() {
	switch was := l.demand.state.Or(demandWanted); {
	case was&(demandWanted|demandEnded) != 0: // somebody has seen to it, or nobody has to
	case was&demandLingers != 0:
		l.demand.again <- struct{}{} // which has room: who sets the first of these comes here alone
	case was&demandRuns == 0:
		go l.meet() // Conn.runs counts the link
	}
}

// demand is what a source has that runs on demand.
//
// Its goroutines come and go, and whoever wakes the link may be anybody, at any time: so it is the
// link that Conn.runs counts, from its attach on. It is taken off when it has ended by its goroutine,
// or, where it has none, by who ends it; the flags say which of them.
type demand struct {
	// state are the flags below. While it is not zero there is one goroutine, or the link is not
	// attached yet, or it has ended.
	state atomic.Uint32
	// again has room for one, for the goroutine that lingers.
	again chan struct{}
	// source is nil for others, and until the link is accepted; running: the goroutine will close the
	// terminus if the link ends. Both are guarded by Conn.mu.
	source  Source
	running bool
}

// pendingLocked: Run has been asked for, and has not begun yet.
func (d *demand) pendingLocked() bool {
	return d.source != nil && d.state.Load()&demandWanted != 0
}

const (
	// demandWanted: Run has to look.
	demandWanted = 1 << iota
	// demandRuns: the goroutine is at it, or about to be. demandLingers: it waits for more to do.
	demandRuns
	demandLingers
	// demandEnded: the link has, and no goroutine begins any more. It stays.
	demandEnded
)

// endLocked comes once, when an attached link ends.
func (d *demand) endLocked(runs *sync.WaitGroup) {
	if was := d.state.Or(demandEnded); d.source != nil && was == 0 {
		runs.Done()
	}
}

// demandLinger is how long the goroutine stays when nothing is wanted. A link that is woken more
// often is spared a new one, and the growth of its stack, each time.
const demandLinger = 50 * time.Millisecond

// meet is the goroutine of a source that runs on demand: it ends a while after nothing is wanted.
func (l *Link) meet() {
	timer := time.NewTimer(demandLinger)
	defer timer.Stop()
	state := &l.demand.state
	for l.demandGoesOn() {
		// What was wanted until here, this run looks for.
		state.Or(demandRuns)
		state.And(demandRuns | demandEnded)
		if err := l.runOnce(l.demand.source); err != nil || l.out.ctx.Err() != nil {
			l.ended(err)
			break
		}
		if !l.linger(timer) {
			return
		}
	}
	l.closeTerminus()
	l.session.conn.runs.Done()
}

// demandGoesOn is false when the link has ended.
func (l *Link) demandGoesOn() bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	l.demand.running = l.state == linkAttached
	return l.demand.running
}

// linger waits until something is wanted, or the link ends. It is false when it was in vain: the next
// who wants something begins another goroutine.
func (l *Link) linger(timer *time.Timer) bool {
	d := &l.demand
	if !d.state.CompareAndSwap(demandRuns, demandRuns|demandLingers) {
		return true
	}
	timer.Reset(demandLinger)
	select {
	case <-d.again:
		return true
	case <-l.out.ctx.Done():
		return true
	case <-timer.C:
	}
	c := l.session.conn
	c.mu.Lock()
	d.running = false // first: from the next line on another may set it
	ended := l.state != linkAttached
	c.mu.Unlock()
	if ended {
		return true
	}
	if d.state.CompareAndSwap(demandRuns|demandLingers, 0) {
		return false
	}
	select { // somebody was faster
	case <-d.again:
	case <-l.out.ctx.Done():
	}
	return true
}

// Detach ends the link from our side, from any goroutine; nothing is sent on it after.
// When it returns the detach has its place behind all that was sent. A sink is notified
// (Closed) when the peer has answered; a source when its Run has returned, or then.
func (l *Link) Detach(err *Error) {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state == linkAttaching && l.early == nil {
		l.early = &wire.Detach{Error: err}
	}
	l.detachLocked(err)
}

func (l *Link) detachLocked(err *Error) {
	if l.state != linkAttached {
		return
	}
	l.endLocked()
	l.appendDetachLocked(err)
	if l.demand.source != nil && !l.demand.running { // there is no Run whose end would do it
		l.session.conn.runs.Go(l.closeTerminus)
	}
}

func (l *Link) appendDetachLocked(err *Error) {
	l.session.ackLocked()
	l.session.frameLocked(func(dst []byte) []byte {
		return wire.AppendDetach(dst, &wire.Detach{Handle: l.request.Handle, Closed: true, Error: l.session.conn.fitting(err)})
	})
}

// endLocked makes sure that nothing is sent any more.
func (l *Link) endLocked() {
	if l.state != linkAttached {
		return
	}
	l.state = linkEnded
	l.demand.endLocked(&l.session.conn.runs)
	l.session.conn.server.metrics.linksOf(l.request.Role).Dec()
	if o := l.out; o != nil {
		o.rest = nil
		if o.drain.timer != nil {
			o.drain.timer.Stop()
		}
		o.cancel(ErrLinkEnded)
	}
}

// detach is the peer's: the link has ended, and we say so too unless we have (§2.7.7).
// That the peer did not mean it for good makes no difference: we keep nothing of a link. An attach
// that has waited for the handle gets it.
func (s *session) detach(d *wire.Detach) error {
	l, err := s.link(d.Handle)
	if err != nil {
		return err
	}
	if d.Error != nil {
		s.conn.log.Debug("AMQP link ended by the client", "link", l.request.Name, "error", d.Error)
	}
	c := s.conn
	c.mu.Lock()
	ours := l.state == linkAttached
	l.endLocked()
	c.mu.Unlock()
	l.closeTerminus()
	l.in.dropPart()
	c.mu.Lock()
	if ours {
		l.appendDetachLocked(nil)
	}
	s.links[d.Handle] = nil
	s.uncountLocked(l)
	c.mu.Unlock()
	if l.heir == nil {
		return nil
	}
	a, err := readAttach(l.heir)
	if err != nil {
		return fmt.Errorf("read attach: %w", err)
	}
	return s.attach(a, l.heir)
}

// closeTerminus notifies the link's end, once. It returns when that has been done, also
// where someone else is doing it.
func (l *Link) closeTerminus() {
	if l.terminus != nil {
		l.closed.Do(func() { l.session.conn.guard("Closed", l.terminus.Closed) })
	}
}
