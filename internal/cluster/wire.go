package cluster

import "context"

// Request is what one node asks another.
type Request struct {
	From, To Node
	// Subject names the kind of request: words joined by '.', such as "slots.evict".
	Subject string
	Body    []byte
}

// Handler answers requests. It may be called by many goroutines at once. Its context ends when
// nobody waits for the answer any more, as far as the wire knows, or when serving stops. An error
// becomes a *RemoteError at the one who asked.
type Handler func(ctx context.Context, r Request) ([]byte, error)

// Wire carries requests between nodes. It has no memory: a request reaches the node now, once, or
// not at all, and its answer may be lost.
type Wire interface {
	// Ask sends a request and waits for the answer. Its context has a deadline. Errors: ErrNoNode
	// where nobody serves for that incarnation, ErrTooLarge, *RemoteError, ctx's own. After any but
	// ErrNoNode and ErrTooLarge the handler may have run; it never runs twice.
	Ask(ctx context.Context, r Request) ([]byte, error)
	// Serve answers requests to self until stop is called, which returns when all handlers have.
	// Requests that are asked once it has returned find the handler.
	Serve(self Node, handler Handler) (stop func(), err error)
}
