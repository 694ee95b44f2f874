package admin

import (
	"context"
	"net/http"
	"net/url"
)

// HubStats is what a hub holds and does, in lists that were asked for it. Rates are means of the last ten
// seconds, over all nodes; nil where nothing was measured.
type HubStats struct {
	// Events and Bytes are what it holds at present.
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
	// Published and BytesIn come in, a second; Read are the events given to readers, where the token may
	// listen.
	Published *float64 `json:"published,omitempty"`
	BytesIn   *float64 `json:"bytesIn,omitempty"`
	Read      *float64 `json:"read,omitempty"`
	// LagEvents and LagSeconds are those of its slowest group, likewise.
	LagEvents  *float64 `json:"lagEvents,omitempty"`
	LagSeconds *float64 `json:"lagSeconds,omitempty"`
}

// TopicStats is what a topic does; see HubStats.
type TopicStats struct {
	Published *float64 `json:"published,omitempty"`
	Delivered *float64 `json:"delivered,omitempty"`
	Failed    *float64 `json:"failed,omitempty"`
	// Waiting events of all its subscriptions are to be delivered, or wait for another try.
	Waiting *float64 `json:"waiting,omitempty"`
}

// FunctionStats is what a function does; see HubStats.
type FunctionStats struct {
	Calls       *float64 `json:"calls,omitempty"`
	FailedCalls *float64 `json:"failedCalls,omitempty"`
}

func withStats(query url.Values) url.Values {
	if query == nil {
		query = url.Values{}
	}
	query.Set("stats", "true")
	return query
}

// HubsWithStats is Hubs, each with its Stats.
func (c *Client) HubsWithStats(ctx context.Context) ([]Hub, error) {
	return list[Hub](ctx, c, "hubs", request{method: http.MethodGet, path: []string{"hubs"}, query: withStats(nil)})
}

// TopicsWithStats is Topics, each with its Stats.
func (c *Client) TopicsWithStats(ctx context.Context) ([]Topic, error) {
	return list[Topic](ctx, c, "topics", request{method: http.MethodGet, path: []string{"topics"}, query: withStats(nil)})
}

// SubscriptionsWithStats is Subscriptions, each with how its deliveries go.
func (c *Client) SubscriptionsWithStats(ctx context.Context, of SubscriptionRef) ([]Subscription, error) {
	return list[Subscription](ctx, c, "subscriptions", request{method: http.MethodGet, path: []string{"subscriptions"}, query: withStats(of.query())})
}

// FunctionsWithStats is Functions, each with its Stats.
func (c *Client) FunctionsWithStats(ctx context.Context) ([]Function, error) {
	return list[Function](ctx, c, "functions", request{method: http.MethodGet, path: []string{"functions"}, query: withStats(nil)})
}
