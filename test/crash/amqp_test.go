package crash

import (
	"context"
	"fmt"

	"github.com/Azure/go-amqp"
)

// What is good for every yard on loopback.
const policy, key = "RootManageSharedAccessKey", "SAS_KEY_VALUE"

// batchFormat is the message format of Event Hubs' batches: each data section is a
// message of its own.
const batchFormat = 0x80013700

// amqpClient sends batches by a connection of its own, to one partition after the other.
type amqpClient struct {
	yard    *yard
	conn    *amqp.Conn
	session *amqp.Session
	senders map[int]*amqp.Sender
}

// connect gives a client that may not have found the yard: it then sends nothing.
func (y *yard) connect(ctx context.Context) *amqpClient {
	c := &amqpClient{yard: y, senders: map[int]*amqp.Sender{}}
	conn, err := amqp.Dial(ctx, y.amqp, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(policy, key)})
	if err != nil {
		return c
	}
	c.conn = conn
	if c.session, err = conn.NewSession(ctx, nil); err != nil {
		c.session = nil
	}
	return c
}

func (c *amqpClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// send publishes one batch and notes that it was accepted.
func (c *amqpClient) send(ctx context.Context) error {
	if c.session == nil {
		return fmt.Errorf("not connected")
	}
	id, size := c.yard.next()
	sender, err := c.sender(ctx, id%partitions)
	if err != nil {
		return err
	}
	batch := &amqp.Message{Format: batchFormat}
	for i := range size {
		inner, err := amqp.NewMessage([]byte(text(id, i))).MarshalBinary()
		if err != nil {
			return err
		}
		batch.Data = append(batch.Data, inner)
	}
	if err := sender.Send(ctx, batch, nil); err != nil {
		return err
	}
	c.yard.mu.Lock()
	defer c.yard.mu.Unlock()
	c.yard.accepted[id] = true
	return nil
}

func (c *amqpClient) sender(ctx context.Context, partition int) (*amqp.Sender, error) {
	if s, ok := c.senders[partition]; ok {
		return s, nil
	}
	s, err := c.session.NewSender(ctx, fmt.Sprintf("orders/Partitions/%d", partition), nil)
	if err == nil {
		c.senders[partition] = s
	}
	return s, err
}
