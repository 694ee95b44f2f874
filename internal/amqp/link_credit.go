package amqp

import (
	"math"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// draining is a peer's wish to have its credit used up, or back. Its owner is the link; guarded by
// Conn.mu.
type draining struct {
	wanted     bool
	unanswered bool // the peer has not been notified yet that there is no credit any more
	dry        bool // the source has said that it has nothing, and has sent nothing since
	// timer gives the credit back when nothing has been sent for a moment; set lets it see whether
	// it is the last that was set.
	timer *time.Timer
	set   uint64
}

// flowLocked learns how many deliveries the peer wants: as many as it says, less
// those that were under way when it said so. A peer that has counted more of them than
// there were (one counts frames) is taken to have seen all.
func (o *outgoing) flowLocked(f *wire.Flow) {
	if f.LinkCredit.Set {
		under := max(0, int64(int32(o.count-f.DeliveryCount.Or(0))))
		o.credit = uint32(min(max(0, int64(f.LinkCredit.Value)-under), math.MaxUint32))
	}
	o.drain.wanted, o.drain.unanswered = f.Drain, f.Drain
	if o.wantedLocked() {
		o.wakeUp()
	}
	switch {
	case f.Drain:
		o.drainOnLocked()
	case f.Echo:
		o.announceCreditLocked()
	}
}

// announceCreditLocked sends the peer what we know of its credit.
func (o *outgoing) announceCreditLocked() {
	o.link.session.flowLocked(func(f *wire.Flow) {
		f.Handle = wire.Some(o.link.request.Handle)
		f.DeliveryCount = wire.Some(o.count)
		f.LinkCredit = wire.Some(o.credit)
		f.Available = wire.Some(uint32(0))
		f.Drain = o.drain.wanted
	})
}

// Drained says that there is nothing to send now: if the peer has asked to have its credit
// used up or given back, what is left of it is given back at once. If it asks later, and
// nothing was sent meanwhile, it waits for as long as a source needs to find out that
// there is something after all. A source that does not say so gives the credit back when
// it has sent nothing for a moment. Only for sources.
func (l *Link) Drained() {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.sourceLocked() == nil {
		l.out.drain.dry = true
		l.out.drainedLocked()
	}
}

// drainedLocked gives back what is left of the credit and notifies the peer that there is none
// any more, if it waits for that. A message that is half sent comes first.
func (o *outgoing) drainedLocked() {
	if !o.drain.unanswered || o.rest != nil {
		return
	}
	o.drain.unanswered = false
	o.count += o.credit
	o.credit = 0
	o.announceCreditLocked()
}

// drainOnLocked goes on with a drain whenever something has changed: the peer has asked, a
// Send has come to its end, the window has opened. While credit is left the source gets a
// moment to send what there is, a short one if it has said that there is nothing.
func (o *outgoing) drainOnLocked() {
	d := &o.drain
	if !d.unanswered || o.link.state != linkAttached {
		return
	}
	if o.credit == 0 {
		o.drainedLocked()
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	wait := o.link.session.conn.server.drainWait
	if d.dry {
		wait = min(wait, dryWait)
	}
	d.set++
	set := d.set
	d.timer = time.AfterFunc(wait, func() { o.drainUnlessBusy(set) })
}

// drainUnlessBusy gives the credit back unless something has changed meanwhile, or a message may be
// waiting, for room or for the window: whatever it waits for lets the drain go on.
func (o *outgoing) drainUnlessBusy(set uint64) {
	s := o.link.session
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	switch {
	case o.link.state != linkAttached || o.drain.set != set:
	case o.rest != nil || o.queued || (o.blocked || o.hungry) && s.outgoing == 0:
	case o.blocked || o.link.demand.pendingLocked():
		o.drainOnLocked() // it has been woken, and has not got on yet
	default:
		o.drainedLocked()
	}
}
