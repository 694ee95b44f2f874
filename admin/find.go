package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// FoundPage is the events that one search has found in a partition, in order.
type FoundPage struct {
	Events []json.RawMessage `json:"events"`
	// Next is where to go on, Looked how many events were looked at; End: there are no more.
	Next   int64 `json:"next"`
	Looked int64 `json:"looked"`
	End    bool  `json:"end"`
}

// Find searches one partition from a position on, for a text in any case, or by a condition as
// subscriptions have them, like "data.total NumberGreaterThan 100". One call looks at 10,000 events
// at most; go on with From as the page's Next, until its End.
func (c *Client) Find(ctx context.Context, hub, partition, group, from, find string) (FoundPage, error) {
	v := url.Values{"find": {find}, "max": {strconv.Itoa(maxFoundPage)}}
	if from != "" {
		v.Set("from", narrow(from, []string{partition}))
	}
	if group != "" {
		v.Set("group", group)
	}
	return one[FoundPage](ctx, c, request{method: http.MethodGet, path: []string{"hubs", hub, "partitions", partition, "events"}, query: v})
}

// maxFoundPage is how many events a page of a search has at most.
const maxFoundPage = 1000
