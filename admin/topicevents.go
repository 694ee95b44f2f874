package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// TopicEvent is an event that a topic holds.
type TopicEvent struct {
	// Sequence is its number in the topic's log.
	Sequence int64 `json:"sequence"`
	Enqueued Time  `json:"enqueued"`
	// Event is in the form of the topic's schema; null where it cannot be read.
	Event json.RawMessage `json:"event"`
}

// TopicEvents is a page of them.
type TopicEvents struct {
	Events []TopicEvent `json:"events"`
	// Next is where to go on.
	Next int64 `json:"next"`
}

// ReadTopic gives a page of what a topic holds, of up to max events; zero means 100. from is as in Query:
// earliest, latest, a number, or a time. It takes nothing from the topic's subscriptions.
func (c *Client) ReadTopic(ctx context.Context, topic, from string, max int) (TopicEvents, error) {
	query := url.Values{}
	if from != "" {
		query.Set("from", from)
	}
	if max > 0 {
		query.Set("max", strconv.Itoa(max))
	}
	return one[TopicEvents](ctx, c, request{method: http.MethodGet, path: []string{"topics", topic, "events"}, query: query})
}
