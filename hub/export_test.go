package hub

import (
	"context"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// BreakConnection cuts the client's connection, as a network does.
func BreakConnection(c *Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.raw.Conn.Close()
	}
}

// Call is what a processor's store is made of.
func (h *Hub) Call(ctx context.Context, operation string, body []byte) ([]byte, error) {
	return h.call(ctx, groupwire.Call{Operation: operation, Group: groupwire.GroupOf(body), Body: body})
}

// EndRequests ends one link of the pair by which a node is asked, EndReplies the other.
func EndRequests(t *testing.T, c *Client, node string) {
	t.Helper()
	testkit.Must(t, c.conn.node(node).exchange.sender.Close(t.Context()))
}

func EndReplies(t *testing.T, c *Client, node string) {
	t.Helper()
	testkit.Must(t, c.conn.node(node).exchange.replies.Close(t.Context()))
}

// Connection tells one connection of the client from another.
func Connection(c *Client) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// WhyConnectionEnded is for messages of failing tests.
func WhyConnectionEnded(conn any) error { return conn.(*connection).amqp.Err() }
