package hub

import (
	"context"
	"errors"

	"github.com/Azure/go-amqp"
)

// oneFrame is a size that fits into one frame: yards and Azure take frames of 64 KiB.
const oneFrame = 60 << 10

// outgoing sends messages on a link.
type outgoing struct {
	conn *connection
	link *amqp.Sender
	// turn is held by who writes: one at a time can. The library has a lock for it, which knows
	// of no contexts.
	turn chan struct{}
}

func newOutgoing(conn *connection, link *amqp.Sender) *outgoing {
	return &outgoing{conn: conn, link: link, turn: make(chan struct{}, 1)}
}

// errReleased: the hub did not take the message, and said no more about it.
var errReleased = errors.New("the hub did not take the events")

// send sends a message of some size and waits for the hub's word.
func (o *outgoing) send(ctx context.Context, m *amqp.Message, size int) error {
	receipt, err := o.write(ctx, m, size)
	if err != nil {
		return err
	}
	state, err := receipt.Wait(ctx)
	if err != nil {
		return err
	}
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		if state.Error != nil {
			return state.Error
		}
	}
	return errReleased
}

// written is a message that is out, or why it is not.
type written struct {
	receipt amqp.SendReceipt
	err     error
}

// write waits until a message is out, or ctx ends: the library alone would wait for a network that takes
// nothing, whatever becomes of ctx.
func (o *outgoing) write(ctx context.Context, m *amqp.Message, size int) (amqp.SendReceipt, error) {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return amqp.SendReceipt{}, context.Cause(ctx)
	}
	done := make(chan written, 1)
	if !o.conn.spawn(func() { done <- o.writeNow(ctx, m, size); <-o.turn }) {
		<-o.turn
		return amqp.SendReceipt{}, errLost
	}
	select {
	case w := <-done:
		return w.receipt, w.err
	case <-ctx.Done():
		return amqp.SendReceipt{}, context.Cause(ctx)
	}
}

// writeNow writes a message. One of several frames goes out whole, also when ctx has ended meanwhile: who
// stopped in the middle would take the link, and with it the answers that others wait for.
func (o *outgoing) writeNow(ctx context.Context, m *amqp.Message, size int) written {
	if size > oneFrame {
		ctx = context.WithoutCancel(ctx)
	}
	receipt, err := o.link.SendWithReceipt(steady{patient{ctx}}, m, nil)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the library has another name for it where credit was waited for
	}
	return written{receipt, err}
}

// steady lets the AMQP library wait for credit no longer than a context lasts, and hides its end when a frame
// is to be written. The library would leave that frame out, though it is numbered, and then may wait
// for ever for a link that has ended.
type steady struct{ patient }

func (steady) Err() error { return nil }
