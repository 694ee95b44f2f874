package amqp

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// incoming is what a link has by which the peer sends.
//
// Credit counts settled deliveries: the peer may have limit of them under
// way, whether it has sent them or not. So a sink that settles slowly slows down a peer
// that keeps to it. It is not enforced, for some clients do not: what bounds what a sink
// holds is the sink, by not returning from Deliver.
type incoming struct {
	link *Link
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
	// share counts it for its holder, and deadline ends the connection if it is not whole in time.
	share    *admission.Share
	deadline *deadline
	// dropped: that was too much, and the rest is only counted. busy: too much for the
	// server, not for the link.
	dropped, busy bool
}

// transfer takes a frame of a delivery.
func (in *incoming) transfer(t *wire.Transfer, payload []byte) error {
	p := &in.part
	if !in.received(!p.open) {
		in.dropPart()
		return nil
	}
	if p.open || t.More || t.Aborted {
		return in.gather(t, payload)
	}
	if !t.DeliveryID.Set {
		return in.misbehaved(errDeliveryID)
	}
	in.deliver(&Delivery{
		ID: t.DeliveryID.Value, Format: t.MessageFormat.Value, Settled: t.Settled.Value, Payload: payload, link: in.link,
	}, uint64(len(payload)))
	return nil
}

// received counts a transfer, and reports whether the link still takes any. The session's window
// is not enforced: one client starts with more than it was given, and what it sends is bounded by
// our reading anyway.
func (in *incoming) received(first bool) bool {
	s := in.link.session
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.nextIncoming++
	if s.incoming > 0 {
		s.incoming--
	}
	if s.incoming == incomingWindow/2 {
		s.flowLocked(nil)
	}
	if in.link.state != linkAttached {
		return false
	}
	if first {
		in.count++
		in.unsettled++
	}
	return true
}

// gather adds a frame to a delivery of several, and delivers it when it has come whole. Those of
// other links may come between.
func (in *incoming) gather(t *wire.Transfer, payload []byte) error {
	p := &in.part
	switch {
	case !p.open && !t.DeliveryID.Set:
		return in.misbehaved(errDeliveryID)
	case !p.open:
		*p = part{open: true, id: t.DeliveryID.Value, format: t.MessageFormat.Value}
		in.link.session.conn.reader.parts.begin(p)
	case t.DeliveryID.Set && t.DeliveryID.Value != p.id:
		return in.misbehaved(fmt.Errorf("%w: %d after %d", errDeliveryID, t.DeliveryID.Value, p.id))
	}
	p.settled = p.settled || t.Settled.Value
	if t.Aborted {
		in.dropPart()
		c := in.link.session.conn
		c.mu.Lock()
		defer c.mu.Unlock()
		in.settledLocked() // nobody is notified
		return nil
	}
	if err := in.keep(payload); err != nil || t.More {
		return err
	}
	in.link.session.conn.reader.parts.whole(p)
	defer in.dropPart() // when the sink is done with the bytes
	d := &Delivery{ID: p.id, Format: p.format, Settled: p.settled, Payload: p.buf, link: in.link}
	if p.busy && p.size <= in.maxBytes {
		d.turnDown(asError(errAllPartsFull))
	} else {
		in.deliver(d, p.size)
	}
	return nil
}

// keep adds bytes to the part, or only counts them when there are too many: for the link, or
// for the server, whose limit is not the peer's fault.
func (in *incoming) keep(payload []byte) error {
	p, c := &in.part, in.link.session.conn
	p.size += uint64(len(payload))
	if p.dropped {
		return nil
	}
	var err error
	if p.size <= in.maxBytes {
		if err = c.reader.parts.grow(p, int(p.size), in.maxBytes); err == nil {
			p.buf = append(p.buf, payload...)
			return nil
		}
		if !errors.Is(err, errAllPartsFull) {
			return err
		}
		c.refuse(err)
	}
	needed := cap(p.buf) + len(payload)
	c.reader.parts.free(p)
	if err != nil {
		p.share.Press(needed)
	}
	p.dropped, p.busy = true, err != nil
	return nil
}

// deliver gives a message to the sink, unless it is too large.
func (in *incoming) deliver(d *Delivery, size uint64) {
	m := in.link.session.conn.server.metrics
	if size <= in.maxBytes {
		m.messagesIn.Inc()
		in.sink.Deliver(d)
		return
	}
	m.refuse(reasonMessageSize)
	d.turnDown(errorTooLarge(d.ID, size, in.maxBytes))
}

// turnDown refuses a message that the sink does not get to see. The peer is notified on
// the delivery, and where it does not listen, on the link.
func (d *Delivery) turnDown(err *Error) {
	d.Reject(err)
	if d.Settled {
		d.link.Detach(err)
	}
}

// dropPart forgets an unfinished message, if there is one.
func (in *incoming) dropPart() {
	if in != nil && in.part.open {
		in.link.session.conn.reader.parts.end(&in.part)
		in.part = part{}
	}
}

// misbehaved ends the link for what the peer did on it.
func (in *incoming) misbehaved(err error) error {
	in.link.session.conn.refuse(err)
	in.dropPart()
	in.link.Detach(asError(err))
	return nil
}

// settledLocked frees the credit of a delivery.
func (in *incoming) settledLocked() {
	in.unsettled--
	if in.link.state != linkAttached {
		return
	}
	// How many more deliveries the peer could be allowed than it knows of. Half of the limit at
	// once: a flow for each delivery would be as much traffic again.
	known := uint32(max(0, int32(in.allowed-in.count)))
	if grant := in.limit - min(in.limit, in.unsettled+known); grant > 0 && grant >= (in.limit+1)/2 {
		in.creditLocked()
	}
}

// creditLocked announces how many deliveries the peer may send.
func (in *incoming) creditLocked() {
	credit := in.limit - min(in.limit, in.unsettled)
	in.allowed = in.count + credit
	in.link.session.flowLocked(func(f *wire.Flow) {
		f.Handle = wire.Some(in.link.request.Handle)
		f.DeliveryCount = wire.Some(in.count)
		f.LinkCredit = wire.Some(credit)
		f.Available = wire.Some(uint32(0))
	})
}

// flowLocked takes the peer's word for how many deliveries it has begun where that is more than
// we know of: it may have skipped some. To believe in less could stall the link.
func (in *incoming) flowLocked(f *wire.Flow) {
	if f.DeliveryCount.Set && int32(f.DeliveryCount.Value-in.count) > 0 {
		in.count = f.DeliveryCount.Value
	}
	if f.Echo {
		in.creditLocked()
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

// settle frees the delivery's credit and notifies the peer, if it is there to listen. The
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
	l.in.settledLocked()
}
