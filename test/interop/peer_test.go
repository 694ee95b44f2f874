//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/go-amqp"
)

// peer is a connection of a plain AMQP client, logged in by a policy's name and key.
type peer struct {
	conn    *amqp.Conn
	session *amqp.Session
}

func dialPeer(ctx context.Context, hostPort string) (*peer, error) {
	conn, err := amqp.Dial(ctx, "amqp://"+hostPort, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain("manager", keyOf("manager"))})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", hostPort, err)
	}
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	return &peer{conn, session}, nil
}

func (p *peer) close() { p.conn.Close() }

// sender publishes to a hub, or to one of its partitions: hub/Partitions/N.
func (p *peer) sender(ctx context.Context, address string) (*amqp.Sender, error) {
	sender, err := p.session.NewSender(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("attach a sender to %s: %w", address, err)
	}
	return sender, nil
}

// noEpoch marks a receiver that owns nothing.
const noEpoch = -1

// receiver reads a partition from its first event. Negative credit gives none until
// IssueCredit does.
func (p *peer) receiver(ctx context.Context, hub string, partition int, epoch int64, credit int32) (*amqp.Receiver, error) {
	options := &amqp.ReceiverOptions{
		Credit:  credit,
		Filters: []amqp.LinkFilter{amqp.NewSelectorFilter("amqp.annotation.x-opt-offset > '-1'")},
	}
	if epoch != noEpoch {
		options.Properties = map[string]any{"com.microsoft:epoch": epoch}
	}
	address := fmt.Sprintf("%s/ConsumerGroups/$Default/Partitions/%d", hub, partition)
	receiver, err := p.session.NewReceiver(ctx, address, options)
	if err != nil {
		return nil, fmt.Errorf("attach a receiver to %s: %w", address, err)
	}
	return receiver, nil
}

// refused tells whether a link was refused, or taken away, because of epochs.
func refused(err error) bool {
	var link *amqp.LinkError
	return errors.As(err, &link) && link.RemoteErr != nil && link.RemoteErr.Condition == amqp.ErrCondStolen
}
