package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// What a connection speaks.
const (
	ProtocolAMQP      = "amqp"
	ProtocolWebSocket = "amqp-websocket"
	ProtocolHTTP      = "http"
	ProtocolKafka     = "kafka"
)

// Connection is one that a client has to a node.
type Connection struct {
	// ID names it among all, for as long as the node runs.
	ID       string `json:"id"`
	Node     string `json:"node"`
	Protocol string `json:"protocol"`
	// Holder is the policy, or the subject of the token, that was shown last; empty: nothing good was.
	Holder  string `json:"holder,omitempty"`
	Address string `json:"address"`
	Since   Time   `json:"since"`
	// Links are AMQP's, the bytes those of AMQP and Kafka, Requests those of HTTP and Kafka.
	Links         int   `json:"links,omitempty"`
	ReceivedBytes int64 `json:"receivedBytes,omitempty"`
	SentBytes     int64 `json:"sentBytes,omitempty"`
	Requests      int64 `json:"requests,omitempty"`
}

// KeyUse is when the keys of a policy were last good for something, at any node and since it started.
type KeyUse struct {
	// Policy is a path of the API: policies/till, or hubs/orders/policies/till.
	Policy    string `json:"policy"`
	Primary   *Time  `json:"primary,omitempty"`
	Secondary *Time  `json:"secondary,omitempty"`
}

// Connections is a page of those to all nodes.
type Connections struct {
	Connections []Connection `json:"connections"`
	// Total is how many there are, and Next the After of the next page; empty: there are no more.
	Total int    `json:"total"`
	Next  string `json:"next,omitempty"`
	// Keys is what is known of all policies since Since, when the node that has run for the shortest time started.
	Keys  []KeyUse `json:"keys"`
	Since Time     `json:"since"`
	// Unanswered are nodes that live and did not answer: what they know is missing.
	Unanswered []string `json:"unanswered,omitempty"`
}

// Connections asks for a page behind an id, empty for the first, of so many at most; 0 leaves it to the yard.
func (c *Client) Connections(ctx context.Context, after string, limit int) (Connections, error) {
	r := request{method: http.MethodGet, path: []string{"connections"}, query: url.Values{}}
	if after != "" {
		r.query.Set("after", after)
	}
	if limit > 0 {
		r.query.Set("limit", strconv.Itoa(limit))
	}
	return one[Connections](ctx, c, r)
}
