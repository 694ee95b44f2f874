package kafka

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Handler is what stands behind the server.
type Handler interface {
	// Connected is called with the first request of a client that has shown who it is, or of any where
	// nobody is asked. An error ends the connection: Kafka has no word for it.
	Connected(c *Conn) (Peer, error)
}

// Peer answers the requests of one connection.
type Peer interface {
	// Begin is called by the connection's reading goroutine, request by request in the order in which
	// they come; while it runs nothing else of the connection is read. What it returns finishes the
	// request. So Produce submits in Begin and waits in Finish: several are under way, and each is
	// answered in its turn. Everything else is best done in Finish, one request after another, and needs
	// no lock of its own.
	// What it leaves unread of a Produce request is passed over.
	Begin(ctx context.Context, r *Request) Finish
	// Disconnected is called once, after the last Finish has returned.
	Disconnected()
}

// Finish finishes a request: it has to answer by w, or to say that there is no answer. It is called by
// the connection's writing goroutine, one at a time and in the order of the requests, exactly once for
// each Begin: where the connection has ended meanwhile ctx has too, and what is written goes nowhere.
// An error ends the connection; so does a panic. What takes long there ends early with Conn.Draining.
type Finish func(ctx context.Context, w *Writer) error

// Request is one request of a client, in a version that is offered.
type Request struct {
	Key, Version int16
	ClientID     string
	// Body is decoded, with its version set; its strings and bytes are its own. Nil for Produce.
	Body kmsg.Request
	// Produce is for that request only. It is read by Begin alone, before it returns.
	Produce *Produce
}

// Authenticator checks what a client brings along to show who it is. It is called by the reading
// goroutine. An error refuses the client; with ErrUnchecked it is cut off without an answer, so that
// it comes again.
//
// An identity may have a method Account() string, which names whose right it is: memory is counted by
// it, operators see it, and who shows a right anew on a connection has to come with the same.
type Authenticator interface {
	// Plain is given user and password, and the address that they come from.
	Plain(ctx context.Context, from, user, password string) (identity any, err error)
	// Bearer is given a token; until is when it ends. A zero time is never.
	Bearer(ctx context.Context, from, token string) (identity any, until time.Time, err error)
	// External is given the state of the TLS layer, whose client certificate has been verified. A client
	// that is refused here may still show who it is by SASL.
	External(ctx context.Context, from string, state tls.ConnectionState) (identity any, err error)
}

// Passwords is what an Authenticator may have besides, and then SCRAM is offered, by which clients show
// that they know a password without sending it.
type Passwords interface {
	// Passwords gives all of a user's that are good; none where there is no such user. Who has shown one of
	// them is let in by Plain with it.
	Passwords(ctx context.Context, from, user string) ([]string, error)
}
