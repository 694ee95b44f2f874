package eventhubs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/tracing"
)

// senderCredit is how many messages a client may send ahead.
const senderCredit = 1000

// sender takes the events that a client publishes on one link (H2).
type sender struct {
	peer *peer
	link *amqp.Link
	at   entity
	// hub is what the link's address found: one of the same name made later is another.
	hub broker.Hub
	// scope is what the link needs a right to, and grant that by which it is used: the connection's
	// reader's only.
	scope auth.Entity
	grant auth.Grant
	// producer is set where the client numbers its events, so that none is stored twice.
	producer *broker.Producer
	unwatch  func()
	// giveBack ends its part of the quota of senders.
	giveBack func()
	// busy refuses everything up to a time; nil: nothing. Both are the connection's reader's only.
	busy  error
	until time.Time
}

// hold is how long a link takes nothing after a quota refused a message. What the client had sent
// behind it, before it could hear of that, must not overtake it: the client sends again from the
// first that was refused. What is under way for longer may; only numbered events are safe from that.
const hold = time.Second

// attachSender accepts a link to a hub or to one of its partitions.
func (p *peer) attachSender(l *amqp.Link, a address) (amqp.Terminus, error) {
	if a.group != "" { // rights to a group are none to publish
		return amqp.Terminus{}, &amqp.Error{Condition: condArgument, Description: "A sender's address has the form " +
			"HUB, HUB/Partitions/ID or HUB/Publishers/NAME."}
	}
	if a.publisher != "" && a.partition != "" {
		return amqp.Terminus{}, &amqp.Error{Condition: condArgument, Description: "A publisher sends to the partition of " +
			"its name: leave the partition out of the address, or the publisher."}
	}
	at := p.entity(a)
	if err := p.authorize(at, auth.Send); err != nil {
		return amqp.Terminus{}, err
	}
	if err := broker.CheckPublisher(a.publisher); err != nil {
		return amqp.Terminus{}, err
	}
	hub, err := p.handler.cfg.Broker.LookUp(p.conn.Context(), a.hub)
	if err != nil {
		return amqp.Terminus{}, err
	}
	if n, err := strconv.Atoi(a.partition); a.partition != "" && (err != nil || n < 0 || n >= hub.Partitions || strconv.Itoa(n) != a.partition) {
		return amqp.Terminus{}, &broker.NotFoundError{Kind: broker.KindPartition, Hub: hub.Name, Name: a.partition, Partitions: hub.Partitions}
	}
	t := amqp.Terminus{MaxMessageBytes: uint64(p.handler.cfg.MaxMessageBytes), Credit: senderCredit}
	s := &sender{peer: p, link: l, at: at, hub: hub, scope: at.scope()}
	s.grant, _ = p.rights.granted(s.scope, auth.Send)
	if s.giveBack, err = p.handler.cfg.Senders.Take(s.grant.Account(), 1); err != nil {
		return amqp.Terminus{}, err
	}
	defer func() {
		if t.Sink == nil {
			s.giveBack()
		}
	}()
	if slices.Contains(l.Request().DesiredCapabilities, capabilityIdempotent) {
		if s.producer, err = p.openProducer(l, a, s.grant.Account(), s.quota); err != nil {
			return amqp.Terminus{}, err
		}
		// The client wants its numbers in exactly these types.
		t.Offered, t.Properties = []wire.Symbol{capabilityIdempotent}, wire.Map{
			{Key: wire.Symbol(wire.AnnotationProducerID), Value: s.producer.ID()},
			{Key: wire.Symbol(wire.AnnotationProducerEpoch), Value: s.producer.Epoch()},
			{Key: wire.Symbol(wire.AnnotationProducerSequence), Value: s.producer.Last()},
		}
	}
	if s.unwatch, err = p.watch(l, at, auth.Send); err != nil {
		return amqp.Terminus{}, err
	}
	t.Sink = s
	return t, nil
}

// Deliver submits a message's events and leaves the waiting to a goroutine, so that many
// messages are under way at once. Nothing is accepted before it is stored.
func (s *sender) Deliver(d *amqp.Delivery) {
	b := s.peer.handler.batches.Get().(*batch)
	defer s.peer.handler.batches.Put(b)
	defer b.reset()
	if err := b.decode(d.Format, d.Payload); err != nil {
		s.refuse(d, err)
		return
	}
	if len(b.events) == 0 {
		d.Accept()
		return
	}
	if s.busy != nil && time.Now().Before(s.until) {
		s.refuse(d, s.busy)
		return
	}
	s.busy = nil
	size := len(d.Payload)
	ctx := s.peer.conn.Context()
	if err := s.peer.budget.take(ctx, size); err != nil {
		s.refuse(d, err)
		return
	}
	span := s.span(ctx, b)
	pending, err := s.submit(ctx, b)
	if err != nil {
		tracing.End(span, err)
		s.peer.budget.give(size)
		if _, full := errors.AsType[*quota.Error](err); full {
			s.busy, s.until = err, time.Now().Add(hold)
		}
		s.refuse(d, err)
		return
	}
	s.peer.work.Go(func() {
		defer s.peer.budget.give(size)
		// Also when the connection has ended: what was submitted makes progress only while
		// somebody waits for it.
		_, err := pending.Wait(context.WithoutCancel(ctx))
		tracing.End(span, err)
		if err != nil {
			s.refuse(d, err)
			return
		}
		d.Accept()
	})
}

func (s *sender) submit(ctx context.Context, b *batch) (*broker.Pending, error) {
	if s.producer == nil {
		to, err := b.target(s.at.address)
		if err != nil {
			return nil, err
		}
		to.Created, to.Quota = s.hub.Created, s.quota()
		return s.peer.handler.cfg.Broker.Submit(ctx, s.at.hub, to, b.events)
	}
	first, err := b.numbers.check(s.producer.ID(), s.producer.Epoch())
	if err != nil {
		return nil, err
	}
	for i := range b.events {
		if len(b.key) > 0 && len(b.events[i].Key) == 0 {
			b.events[i].Key = b.key
		}
	}
	return s.producer.Submit(ctx, first, b.events)
}

// quota is that of the policy by which the link is used: the one that it was attached with, and when
// its grant has expired or was revoked the one by which the link lives on. Where there is none the
// link is about to end.
func (s *sender) quota() *quota.Meter {
	if !s.grant.Allows(s.scope, auth.Send, time.Now()) {
		if another, ok := s.peer.rights.granted(s.scope, auth.Send); ok {
			s.grant = another
		}
	}
	return s.peer.handler.cfg.Access.Quota(s.grant.Account())
}

// refuse rejects a message. Where the hub is gone the link goes with it: no message on
// it could fare better, and a hub that has taken the name is another.
func (s *sender) refuse(d *amqp.Delivery, err error) {
	reported := s.peer.explain(s.at, err)
	d.Reject(reported)
	if reported.Condition == condNotFound {
		s.link.Detach(reported)
	}
}

// Closed is called when the link has ended.
func (s *sender) Closed() {
	s.unwatch()
	s.giveBack()
}
