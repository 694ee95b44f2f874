package amqp

import (
	"math"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// flowLocked takes a flow of the peer's for the link (§2.6.7).
func (l *Link) flowLocked(f *wire.Flow) {
	switch {
	case l.state != linkAttached:
	case l.in != nil:
		l.peerCountLocked(f)
	default:
		l.takeCreditLocked(f)
	}
}

// takeCreditLocked learns how many deliveries the peer wants: as many as it says, less
// those that were under way when it said so. A peer that has counted more of them than
// there were (one counts frames) is taken to have seen all.
func (l *Link) takeCreditLocked(f *wire.Flow) {
	o := l.out
	if f.LinkCredit.Set {
		under := max(0, int64(int32(o.count-f.DeliveryCount.Or(0))))
		o.credit = uint32(min(max(0, int64(f.LinkCredit.Value)-under), math.MaxUint32))
	}
	o.drain, o.unanswered = f.Drain, f.Drain
	if l.wantedLocked() {
		o.wakeUp()
	}
	switch {
	case o.drain:
		l.drainOnLocked()
	case f.Echo:
		l.announceCreditLocked()
	}
}

// tellCreditLocked tells the peer what we know of its credit.
func (l *Link) announceCreditLocked() {
	o := l.out
	l.session.flowLocked(func(f *wire.Flow) {
		f.Handle = wire.Some(l.request.Handle)
		f.DeliveryCount = wire.Some(o.count)
		f.LinkCredit = wire.Some(o.credit)
		f.Available = wire.Some(uint32(0))
		f.Drain = o.drain
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
		l.out.dry = true
		l.drainedLocked()
	}
}

// drainedLocked gives back what is left of the credit and tells the peer that there is none
// any more, if it waits for that. A message that is half sent comes first.
func (l *Link) drainedLocked() {
	o := l.out
	if !o.unanswered || o.rest != nil {
		return
	}
	o.unanswered = false
	o.count += o.credit
	o.credit = 0
	l.announceCreditLocked()
}

// drainOnLocked goes on with a drain whenever something has changed: the peer has asked, a
// Send has come to its end, the window has opened. While credit is left the source gets a
// moment to send what there is, a short one if it has said that there is nothing.
func (l *Link) drainOnLocked() {
	o := l.out
	if !o.unanswered || l.state != linkAttached {
		return
	}
	if o.credit == 0 {
		l.drainedLocked()
		return
	}
	if o.drainer != nil {
		o.drainer.Stop()
	}
	wait := l.session.conn.server.drainWait
	if o.dry {
		wait = min(wait, dryWait)
	}
	o.drains++
	drain := o.drains
	o.drainer = time.AfterFunc(wait, func() { l.drainUnlessBusy(drain) })
}

// drainUnlessBusy gives the credit back unless something has changed meanwhile, or a
// message may be waiting, for room or for the window: whatever it waits for lets the drain
// go on.
func (l *Link) drainUnlessBusy(drain uint64) {
	c, o := l.session.conn, l.out
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.state != linkAttached || o.drains != drain:
	case o.rest != nil || o.queued || o.blocked && l.session.outgoing == 0:
	case o.blocked:
		l.drainOnLocked() // it has been woken, and has not got on yet
	default:
		l.drainedLocked()
	}
}
