package amqp

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// incoming is what a link has by which the peer sends.
//
// Credit counts settled deliveries: the peer is told that it may have limit of them under
// way, whether it has sent them or not. So a sink that settles slowly slows down a peer
// that keeps to it. It is not enforced, for some clients do not: what bounds what a sink
// holds is the sink, by not returning from Deliver.
type incoming struct {
	sink Sink
	// maxBytes of a message. limit of deliveries that are not settled. Both are fixed.
	maxBytes uint64
	limit    uint32

	// The reading goroutine's.
	part part

	// Guarded by Conn.mu. Numbers of deliveries are modulo 2^32.
	count     uint32 // deliveries begun, from the peer's initial-delivery-count on
	allowed   uint32 // the count up to which the peer may go
	unsettled uint32 // deliveries begun and not settled
}

// part is a delivery of which not all has come yet.
type part struct {
	open    bool
	id      uint32
	format  uint32
	settled bool
	size    uint64
	// buf is what has come. It is the message's own and holds little more than that, so that
	// what is counted is what is held.
	buf []byte
	// dropped: that was too much, and the rest is only counted. busy: too much for the
	// server, not for the link.
	dropped, busy bool
}

func newIncoming(l *Link, t *Terminus, answer *wire.Attach) *incoming {
	start := l.request.InitialDeliveryCount.Or(0)
	in := &incoming{sink: t.Sink, maxBytes: answer.MaxMessageSize.Value, limit: t.Credit, count: start, allowed: start}
	if in.maxBytes == 0 {
		in.maxBytes = l.session.conn.server.cfg.MaxMessageBytes
	}
	if in.limit == 0 {
		in.limit = defaultCredit
	}
	return in
}

// transfer takes a frame of a delivery.
func (l *Link) transfer(t *wire.Transfer, payload []byte) error {
	p := &l.in.part
	if !l.received(!p.open) {
		l.dropPart()
		return nil
	}
	if p.open || t.More || t.Aborted {
		return l.gather(t, payload)
	}
	if !t.DeliveryID.Set {
		return l.misbehaved(errDeliveryID)
	}
	l.deliver(&Delivery{
		ID: t.DeliveryID.Value, Format: t.MessageFormat.Value, Settled: t.Settled.Value, Payload: payload, link: l,
	}, uint64(len(payload)))
	return nil
}

// received counts a transfer, and tells whether the link still takes any.
func (l *Link) received(first bool) bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	l.session.receivedLocked()
	if l.state != linkAttached {
		return false
	}
	if first {
		l.in.count++
		l.in.unsettled++
	}
	return true
}

// gather adds a frame to a delivery of several. Those of other links may come between.
func (l *Link) gather(t *wire.Transfer, payload []byte) error {
	p := &l.in.part
	if !p.open {
		if !t.DeliveryID.Set {
			return l.misbehaved(errDeliveryID)
		}
		*p = part{open: true, id: t.DeliveryID.Value, format: t.MessageFormat.Value}
	}
	if t.DeliveryID.Set && t.DeliveryID.Value != p.id {
		return l.misbehaved(fmt.Errorf("%w: %d after %d", errDeliveryID, t.DeliveryID.Value, p.id))
	}
	p.settled = p.settled || t.Settled.Value
	if t.Aborted {
		l.dropPart()
		l.settled()
		return nil
	}
	if err := l.keep(payload); err != nil {
		return err
	}
	if t.More {
		return nil
	}
	l.deliverPart()
	return nil
}

// keep adds bytes to the part, or only counts them when there are too many.
func (l *Link) keep(payload []byte) error {
	p := &l.in.part
	p.size += uint64(len(payload))
	if p.dropped {
		return nil
	}
	if p.size > l.in.maxBytes {
		l.freePart()
		p.dropped = true
		return nil
	}
	err := l.growPart(int(p.size))
	switch {
	case err == nil:
		p.buf = append(p.buf, payload...)
	case errors.Is(err, errAllPartsFull):
		l.session.conn.refuse(err)
		l.freePart()
		p.dropped, p.busy = true, true
	default:
		return err
	}
	return nil
}

// growPart makes room for so many bytes, and for twice as many as there was room for
// before, within the limits.
func (l *Link) growPart(size int) error {
	p, c := &l.in.part, l.session.conn
	was := cap(p.buf)
	if size <= was {
		return nil
	}
	room := partRoom(max(size, int(min(2*uint64(was), l.in.maxBytes))))
	if limit := max(uint64(maxPartBytes), l.in.maxBytes); uint64(c.parts+room-was) > limit {
		return fmt.Errorf("%w: %d bytes are allowed", errPartsFull, limit)
	}
	if !c.server.parts.take(room - was) {
		return errAllPartsFull
	}
	c.parts += room - was
	old := p.buf
	p.buf = append(c.server.partBuffers.get(room), old...)
	c.server.partBuffers.put(old)
	return nil
}

// deliverPart delivers what has now come whole.
func (l *Link) deliverPart() {
	p := l.in.part
	d := &Delivery{ID: p.id, Format: p.format, Settled: p.settled, Payload: p.buf, link: l}
	defer l.dropPart() // when the sink is done with the bytes
	if p.busy && p.size <= l.in.maxBytes {
		d.turnDown(asError(errAllPartsFull))
		return
	}
	l.deliver(d, p.size)
}

// deliver gives a message to the sink, unless it is too large.
func (l *Link) deliver(d *Delivery, size uint64) {
	c := l.session.conn
	if size <= l.in.maxBytes {
		c.server.metrics.messagesIn.Inc()
		l.in.sink.Deliver(d)
		return
	}
	c.server.metrics.refuse(reasonMessageSize)
	d.turnDown(errorTooLarge(d.ID, size, l.in.maxBytes))
}

// turnDown refuses a message that the sink does not get to see. The peer is told that on
// the delivery, and where it does not listen, on the link.
func (d *Delivery) turnDown(err *Error) {
	d.Reject(err)
	if d.Settled {
		d.link.Detach(err)
	}
}

// freePart gives back the memory of an unfinished message.
func (l *Link) freePart() {
	p, c := &l.in.part, l.session.conn
	c.parts -= cap(p.buf)
	c.server.parts.giveBack(cap(p.buf))
	c.server.partBuffers.put(p.buf)
	p.buf = nil
}

// dropPart forgets an unfinished message.
func (l *Link) dropPart() {
	if l.in != nil {
		l.freePart()
		l.in.part = part{}
	}
}

// misbehaved ends the link for what the peer did on it.
func (l *Link) misbehaved(err error) error {
	l.session.conn.refuse(err)
	l.dropPart()
	l.Detach(asError(err))
	return nil
}

// settled frees the place of a delivery that nobody is told of.
func (l *Link) settled() {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	l.settledLocked()
}

func (l *Link) settledLocked() {
	l.in.unsettled--
	if l.state != linkAttached {
		return
	}
	// Half of the limit at once: a flow for each delivery would be as much traffic again.
	if grant := l.spareLocked(); grant > 0 && grant >= (l.in.limit+1)/2 {
		l.creditLocked()
	}
}

// spareLocked is how many more deliveries the peer could be allowed than it knows of.
func (l *Link) spareLocked() uint32 {
	in := l.in
	known := uint32(max(0, int32(in.allowed-in.count)))
	return in.limit - min(in.limit, in.unsettled+known)
}

// creditLocked tells the peer how many deliveries it may send.
func (l *Link) creditLocked() {
	in := l.in
	credit := in.limit - min(in.limit, in.unsettled)
	in.allowed = in.count + credit
	l.session.flowLocked(func(f *wire.Flow) {
		f.Handle = wire.Some(l.request.Handle)
		f.DeliveryCount = wire.Some(in.count)
		f.LinkCredit = wire.Some(credit)
		f.Available = wire.Some(uint32(0))
	})
}

// peerCountLocked takes the peer's word for how many deliveries it has begun where that is
// more than we know of: it may have skipped some. To believe in less could stall the link.
func (l *Link) peerCountLocked(f *wire.Flow) {
	if f.DeliveryCount.Set && int32(f.DeliveryCount.Value-l.in.count) > 0 {
		l.in.count = f.DeliveryCount.Value
	}
	if f.Echo {
		l.creditLocked()
	}
}

// Accept settles the delivery as stored.
func (d *Delivery) Accept() {
	d.settle(func() { d.link.session.acceptLocked(d.ID) })
}

// Reject settles the delivery as refused.
func (d *Delivery) Reject(err *Error) {
	if err == nil {
		err = &Error{Condition: ConditionInternalError, Description: "The message was refused."}
	}
	d.settle(func() {
		s := d.link.session
		s.frameLocked(func(dst []byte) []byte {
			return wire.AppendDisposition(dst, &wire.Disposition{
				Role: wire.RoleReceiver, First: d.ID, Settled: true,
				State: wire.State{Outcome: wire.OutcomeRejected, Error: s.conn.fitting(err)},
			})
		})
	})
}

// settle frees the delivery's place and tells the peer, if it is there to listen. The
// second time is one too many and does nothing.
func (d *Delivery) settle(notifyLocked func()) {
	l := d.link
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.done {
		return
	}
	d.done = true
	if l.state == linkAttached && !d.Settled {
		notifyLocked()
	}
	l.settledLocked()
}
