package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// The processor reaches a yard's store by this; for a program it is nothing to call.
func init() {
	groupwire.CallHub = func(ctx context.Context, h any, operation string, body []byte) ([]byte, error) {
		return h.(*Hub).call(ctx, operation, body)
	}
}

// call sends a request to the yard's node $yard for this hub. Bodies are the caller's business.
// ErrNotYard where the hub has no such node; a reply that is no success is a *CallError.
//
// The connection is retried, but a request is sent once: one whose reply did not come, for whatever
// reason, may have been carried out. The reply is waited for as long as ctx allows.
func (h *Hub) call(ctx context.Context, operation string, body []byte) ([]byte, error) {
	err := h.named()
	var answer []byte
	var sent error // of the request, once that was sent
	if err == nil {
		err = h.client.retry(ctx, asking, func(ready context.Context) error {
			conn, err := h.client.connect(ready)
			if err != nil {
				return err
			}
			if err := conn.keep(ready, h.client.at.audience(h.name)); err != nil {
				return err
			}
			if _, err := conn.exchangeWith(ready, groupwire.Node); err != nil {
				return notYard(err)
			}
			r, err := conn.ask(ctx, groupwire.Node, &amqp.Message{
				ApplicationProperties: map[string]any{"operation": operation, "name": h.name},
				Data:                  [][]byte{body},
			})
			if _, unsent := errors.AsType[*unsentError](err); unsent {
				return err
			}
			answer, sent = r.body, err
			return nil
		})
	}
	switch {
	case err != nil:
	case sent == nil:
		return answer, nil
	case ctx.Err() != nil:
		err = ended(ctx, sent)
	case h.client.life.ended():
		err = ErrClosed
	default:
		err = judge(sent, asking).err
	}
	return nil, fmt.Errorf("call %s of hub %s: %w", operation, h.name, err)
}

// notYard makes what a hub says about a node that it does not have into ErrNotYard. Azure may call
// it a lack of rights; a yard asks for none before there is a request.
func notYard(err error) error {
	said, ok := errors.AsType[*amqp.Error](err)
	if !ok || detached(err) {
		return err
	}
	switch said.Condition {
	case amqp.ErrCondNotFound, amqp.ErrCondUnauthorizedAccess, amqp.ErrCondNotAllowed, amqp.ErrCondNotImplemented, condArgument:
		return fmt.Errorf("%w: %v", ErrNotYard, remoteError{said}) // not %w: it is no verdict on the hub
	}
	return err
}
