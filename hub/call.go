package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// The processor reaches a yard's store by this; for a program it is nothing to call.
func init() {
	groupwire.CallHub = func(ctx context.Context, h any, c groupwire.Call) ([]byte, error) {
		return h.(*Hub).call(ctx, c)
	}
}

// call sends a request to the yard's node $yard for this hub. Bodies are the caller's business.
// ErrNotYard where the hub has no such node; a reply that is no success is a *CallError.
//
// The connection is retried, but a request is sent once: one whose reply did not come, for whatever
// reason, may have been carried out. The reply is waited for as long as ctx allows.
func (h *Hub) call(ctx context.Context, c groupwire.Call) ([]byte, error) {
	err := h.named()
	var answer []byte
	var sent error // of the request, once that was sent
	if err == nil {
		err = h.client.retry(ctx, asking, func(ready context.Context) error {
			conn, err := h.client.connect(ready)
			if err != nil {
				return err
			}
			if err := h.keepForCalls(ready, conn, c.Group); err != nil {
				return err
			}
			if _, err := conn.exchangeWith(ready, groupwire.Node); err != nil {
				return notYard(err)
			}
			r, err := conn.ask(ctx, groupwire.Node, &amqp.Message{
				ApplicationProperties: c.Properties(h.name),
				Data:                  [][]byte{c.Body},
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
	return nil, fmt.Errorf("call %s of hub %s: %w", c.Operation, h.name, err)
}

// keepForCalls has a token put for the hub; where that is refused because it is good for one group
// only, then for the group.
func (h *Hub) keepForCalls(ctx context.Context, conn *connection, group string) error {
	narrow := h.client.at.audience(h.name + "/ConsumerGroups/" + group)
	if group != "" && conn.grants.use(narrow, time.Now(), 0) {
		return nil
	}
	err := conn.keep(ctx, h.client.at.audience(h.name))
	if group != "" && errors.Is(err, ErrUnauthorized) {
		return conn.keep(ctx, narrow)
	}
	return err
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
