package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// BusyKeys is which partition keys the events have that are published to a hub at present. They are counted
// while somebody asks for them: from the first request on, and until a minute after the last.
type BusyKeys struct {
	Hub string `json:"hub"`
	// Since is when the oldest event was counted at the earliest: of those asked for all the time, five to
	// ten minutes ago.
	Since Time `json:"since"`
	// Events were counted in the partitions that were asked for; Keyed of them have a key.
	Events int64     `json:"events"`
	Keyed  int64     `json:"keyed"`
	Keys   []BusyKey `json:"keys"`
	// Unanswered are nodes that live and did not answer: what was published through them is missing.
	Unanswered []string `json:"unanswered,omitempty"`
}

// BusyKey is a key with the partition that its events went to.
type BusyKey struct {
	Partition string `json:"partition"`
	Key       string `json:"key"`
	// Events had it, or fewer: Error is by how many it may be too high.
	Events int64 `json:"events"`
	Error  int64 `json:"error"`
	// Share is that of Events in all that were counted in the partition, from 0 to 1.
	Share float64 `json:"share"`
}

// BusyKeysQuery chooses partitions, by ids with commas between them; empty: all. Limit is how many keys
// are told at most; 0 leaves it to the yard.
type BusyKeysQuery struct {
	Partition string
	Limit     int
}

// BusyKeys asks for the busiest keys of a hub, and has the yard count them for a minute more.
func (c *Client) BusyKeys(ctx context.Context, hub string, q BusyKeysQuery) (BusyKeys, error) {
	v := url.Values{}
	if q.Partition != "" {
		v.Set("partition", q.Partition)
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return one[BusyKeys](ctx, c, request{method: http.MethodGet, path: []string{"hubs", hub, "keys"}, query: v})
}
