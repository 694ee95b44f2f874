package amqp

import (
	"context"
	"crypto/tls"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// Error is what is reported to a peer when a link, session or connection is ended for a reason,
// or a message rejected.
type Error = wire.Error

// Handler is what stands behind the server.
type Handler interface {
	// Connected is called when a connection has been opened by its peer. Its answer
	// decides on the connection's links. An error closes the connection with it.
	Connected(c *Conn) (Peer, error)
}

// Peer is the handler's side of one connection. Attach calls come one at a time, from the
// connection's reading goroutine: what takes long there holds up the connection's other links.
type Peer interface {
	// Attach decides on a link that the peer wants; it is the time to read l.Request, of
	// which little is left later. Where it returns an error the link is refused: an *Error is
	// reported as it is, another as amqp:internal-error. To accept it and end it at once, accept
	// it with a Source whose Run returns an *Error.
	Attach(l *Link) (Terminus, error)
	// Disconnected is called once, after all links have been closed.
	Disconnected()
}

// Terminus is our end of an accepted link: either Sink or Source is set, as the link's role asks.
type Terminus struct {
	Sink   Sink
	Source Source

	// MaxMessageBytes is announced to the peer; for a sink it is enforced as well: a longer
	// message is rejected and the link goes on. A smaller limit that the peer named wins.
	// Zero: none is announced, and for a sink the server's own limit holds.
	MaxMessageBytes uint64
	// Credit is how many messages the peer is asked to send at most before the first is
	// settled; it is topped up at half. Some clients send more, and that is let through: a
	// sink that must not hold more than so much has to wait in Deliver. Zero means 1000.
	Credit uint32
	// Settled answers that a source sends settled whatever was asked.
	Settled bool
	// OnDemand is for sources that may have nothing to send, or none who wants it: Run is called when
	// the link is attached and after each Link.Wake, sends what there is and is wanted, and returns
	// nil, and the link goes on. So it costs no goroutine meanwhile.
	OnDemand bool
	// Offered and Properties go into the answer.
	Offered    []wire.Symbol
	Properties wire.Map
}

// Sink takes the messages that a peer sends on a link.
type Sink interface {
	// Deliver is called for each whole message, in order, from the connection's reading
	// goroutine; while it runs nothing else of the connection is read, which is how a
	// sink that cannot follow slows its peer down. The delivery's payload is valid until
	// it returns. The delivery has to be settled exactly once, by any goroutine, then or
	// later, unless the link has been closed meanwhile.
	Deliver(d *Delivery)
	// Closed is called once, when the link has ended for whatever reason, before the
	// peer is answered. No Deliver runs or follows.
	Closed()
}

// Source gives messages to a peer.
type Source interface {
	// Run sends by l.Send until ctx ends, in a goroutine of its own, begun when the attach has been
	// answered. What it returns ends the link with it, unless the link has ended already. See
	// Terminus.OnDemand for another way.
	Run(ctx context.Context, l *Link) error
	// Closed is called once, when the link has ended for whatever reason, before the peer is
	// answered. Run may still be on its way out: its ctx has ended, and what it sends is discarded.
	Closed()
}

// Delivery is one message from a peer.
type Delivery struct {
	ID      uint32
	Format  uint32
	Payload []byte
	// Settled: the peer does not want to hear what became of it. Accept and Reject are
	// to be called all the same.
	Settled bool

	link *Link
	done bool // settled by us; guarded by Conn.mu
}

// Identity is who a connection said it is, as far as SASL knows. The zero value is
// nobody in particular.
type Identity struct {
	// Mechanism is that of SASL, empty when the connection had no such layer.
	Mechanism string
	// Value is what Config.Authenticate made of it; nil for anonymous ones.
	Value any
}

// Authenticator checks what a mechanism brings along. It is asked for PLAIN and EXTERNAL
// only; an error refuses the connection with the SASL outcome auth, ErrUnchecked with sys-temp.
type Authenticator interface {
	// Plain is given user and password, and the address that they come from.
	Plain(ctx context.Context, from, user, password string) (any, error)
	// External is given the state of the TLS layer, whose client certificate has been verified.
	External(ctx context.Context, from string, state tls.ConnectionState) (any, error)
}
