package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/go-amqp"
)

const nodeYard = "$yard"

// Call asks the yard's own node $yard of this hub: what the processor's store is made
// of. Bodies are the caller's business. ErrNotYard where the hub has no such node; an answer that is
// no success is a *CallError.
//
// A request is sent once: the connection is retried, but a call whose answer did not come, for
// whatever reason, may have been done. It waits for the answer as long as ctx allows.
func (h *Hub) Call(ctx context.Context, operation string, body []byte) ([]byte, error) {
	var answer []byte
	err := h.callReady(ctx, func(conn *connection) (err error) {
		answer, err = h.callOn(ctx, conn, operation, body)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("call %s of hub %s: %w", operation, h.name, err)
	}
	return answer, nil
}

// callReady makes a call once there is a connection with the node's links and rights, and
// again only where the request was not sent.
func (h *Hub) callReady(ctx context.Context, call func(*connection) error) error {
	if err := h.named(); err != nil {
		return err
	}
	var sent error
	err := h.client.retry(ctx, asking, func(ready context.Context) error {
		conn, err := h.ready(ready)
		if err != nil {
			return err
		}
		err = call(conn)
		if unsent := (*unsentError)(nil); errors.As(err, &unsent) {
			return err
		}
		sent = err
		return nil
	})
	if err != nil {
		return err
	}
	return h.sentError(ctx, sent)
}

// sentError is the error, if any, of a request that was sent.
func (h *Hub) sentError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx, err)
	case h.client.isClosed():
		return ErrClosed
	}
	return judge(err, asking).err
}

// ready sees to it that a request can be sent at once.
func (h *Hub) ready(ctx context.Context) (*connection, error) {
	conn, err := h.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.keep(ctx, h.client.at.audience(h.name)); err != nil {
		return nil, err
	}
	if _, err := conn.exchangeWith(ctx, nodeYard); err != nil {
		return nil, notYard(err)
	}
	return conn, nil
}

// callOn sends the request. Its own context is the caller's, and not that of an attempt: an
// answer may take long.
func (h *Hub) callOn(ctx context.Context, conn *connection, operation string, body []byte) ([]byte, error) {
	r, err := conn.ask(ctx, nodeYard, &amqp.Message{
		ApplicationProperties: map[string]any{"operation": operation, "name": h.name},
		Data:                  [][]byte{body},
	})
	return r.body, err
}

// notYard makes what a hub says about a node that it does not have into ErrNotYard. Azure may call it
// a lack of rights; a yard asks for none before there is a request.
func notYard(err error) error {
	said := (*amqp.Error)(nil)
	if !errors.As(err, &said) || detached(err) {
		return err
	}
	switch said.Condition {
	case amqp.ErrCondNotFound, amqp.ErrCondUnauthorizedAccess, amqp.ErrCondNotAllowed, amqp.ErrCondNotImplemented, condArgument:
		return fmt.Errorf("%w: %v", ErrNotYard, remoteError{said}) // not %w: it is no verdict on the hub
	}
	return err
}
