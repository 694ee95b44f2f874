package eventhubs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// attachTimeout is how long a link may hold up its connection until it is accepted.
const attachTimeout = 20 * time.Second

// peer is the listener's side of one connection.
type peer struct {
	handler *Handler
	conn    *amqp.Conn
	log     *slog.Logger

	rights rights
	// ignore ends the news of policies.
	ignore             func()
	claims, management *exchange
	yard               *yardNode // nil: there is none
	budget             *budget
	// lateRefusals has room for maxLate.
	lateRefusals chan struct{}
	// work counts the goroutines that the peer has begun.
	work sync.WaitGroup
}

// newPeer makes a peer whose rights follow the policies.
func newPeer(d *Handler, c *amqp.Conn) *peer {
	p := &peer{handler: d, conn: c, log: c.Log(), budget: newBudget(), lateRefusals: make(chan struct{}, maxLate)}
	p.ignore = d.cfg.Access.OnChange(p.rights.review)
	p.rights.await(d.cfg.TokenTimeout, p.giveUp)
	p.claims = &exchange{peer: p, handle: p.putToken, maxUntaken: maxUntakenBytes}
	p.management = &exchange{peer: p, handle: p.manage, maxUntaken: maxUntakenBytes}
	if d.cfg.Groups != nil {
		p.yard = &yardNode{
			exchange: &exchange{peer: p, maxUntaken: maxYardUntakenBytes},
			groups:   d.cfg.Groups,
			watches:  &watches{peer: p, groups: d.cfg.Groups, byGroup: map[string]*watch{}},
			listings: make(chan struct{}, maxListings),
		}
	}
	return p
}

// Attach decides on a link by what its address names.
func (p *peer) Attach(l *amqp.Link) (amqp.Terminus, error) {
	var text string // the address at our end of the link
	switch r := l.Request(); {
	case sends(l) && r.Target == nil:
		return amqp.Terminus{}, &amqp.Error{Condition: condInvalidField, Description: "The link has no target."}
	case sends(l):
		text = r.Target.Address.Value
	case r.Source == nil:
		return amqp.Terminus{}, &amqp.Error{Condition: condInvalidField, Description: "The link has no source."}
	default:
		text = r.Source.Address.Value
	}
	a := parseAddress(text)
	var t amqp.Terminus
	var err error
	switch {
	case a.node == nodeClaims:
		t, err = p.attachClaims(l)
	case a.node == nodeManagement:
		// A connection may have several, also before it has put a token: one client attaches them
		// first. Rights are checked with each request.
		t = p.management.attach(l)
	case a.node == nodeYard:
		t, err = p.attachYard(l, a)
	case a.node == nodeNone:
		err = &amqp.Error{Condition: condInvalidField, Description: "The link's address names nothing."}
	case sends(l):
		t, err = p.attachSender(l, a)
	default:
		t, err = p.attachReceiver(l, a)
	}
	if err != nil {
		return amqp.Terminus{}, p.explain(p.entity(a), err)
	}
	return t, nil
}

// Disconnected waits for all that the connection has under way. What was submitted is
// stored although nobody can be notified any more.
func (p *peer) Disconnected() {
	p.ignore()
	p.rights.stop()
	p.work.Wait()
}

// giveUp ends a connection without rights. Clients take it for one that was idle, and
// come back when they have something to say.
func (p *peer) giveUp() {
	p.handler.metrics.abandoned.Inc()
	p.conn.Close(p.explain(p.entity(address{}), &amqp.Error{
		Condition: condConnectionForced, Description: textNoToken(p.handler.cfg.TokenTimeout),
	}))
}

// sends reports whether the peer is the sender of a link.
func sends(l *amqp.Link) bool { return l.Request().Role == wire.RoleSender }

// entity is what errors say of an address.
func (p *peer) entity(a address) entity {
	return entity{host: p.conn.Hostname(), namespace: p.handler.cfg.Broker.Namespace(), address: a}
}

// grant takes in what the client has shown: from the first on it is no stranger any more. Where
// there is no permit for one more client it stays one.
func (p *peer) grant(g auth.Grant) error {
	if err := p.conn.Know(g.Account()); err != nil {
		return err
	}
	return p.rights.add(g)
}

// authorize checks for a right to a link's entity.
func (p *peer) authorize(at entity, need auth.Rights) error {
	if p.rights.allow(at.scope(), need) {
		return nil
	}
	return at.unauthorized(need)
}

// watch ends a link when the rights to its entity do. It returns what to call when the link has
// ended. It comes last when a link is attached: rights that have ended since they were checked,
// also because the hub is not the same any more, refuse it.
func (p *peer) watch(l *amqp.Link, at entity, need auth.Rights) (unwatch func(), err error) {
	g := &guard{entity: at.scope(), need: need, end: func(why error) { l.Detach(p.explain(at, why)) }}
	if !p.rights.watch(g) {
		return nil, at.unauthorized(need)
	}
	return func() { p.rights.unwatch(g) }, nil
}

// explain gives an error as it is reported to the client. The log has the same tracking id.
func (p *peer) explain(at entity, err error) *amqp.Error {
	reported, known := judge(at, err)
	id := newTrackingID()
	reported.Description = at.describe(reported.Description, id, time.Now())
	level := slog.LevelDebug
	if !known && p.conn.Context().Err() == nil { // what the connection's end brings is no fault
		level = slog.LevelError
	}
	p.log.Log(context.Background(), level, "client was told of an error",
		"trackingId", id, "resource", at.resource(), "condition", string(reported.Condition), "error", err)
	return &reported
}

// failure is explain for errors that go into a reply.
func (p *peer) failure(at entity, err error) reply {
	reported := p.explain(at, err)
	said := reply{status: statusOf(reported.Condition), description: reported.Description, condition: reported.Condition}
	if late, ok := errors.AsType[*lateError](err); ok {
		said.after = late.wait
	}
	return said
}

// lateError is of a token that is not good, and that its client is told of a while later.
type lateError struct {
	error
	wait time.Duration
}

func (e *lateError) Unwrap() error { return e.error }

// from says by which address a token is shown.
func (p *peer) from(ctx context.Context) context.Context {
	return admission.WithRemote(ctx, p.conn.Remote())
}

// late has the failures of the connection's address counted, and told the later the more there are.
func (p *peer) late(err error) error {
	return &lateError{err, p.handler.cfg.Access.RefusedFor(p.conn.Remote(), err)}
}

// property looks for a value in a link's properties.
func property(m wire.Map, name wire.Symbol) any {
	for _, pair := range m {
		if text, ok := textOf(pair.Key); ok && text == string(name) {
			return pair.Value
		}
	}
	return nil
}

// badProperty refuses a link for one of its properties.
func badProperty(name wire.Symbol) error {
	return &amqp.Error{
		Condition:   condArgument,
		Description: "The link property " + string(name) + " is no number that it can be.",
	}
}
