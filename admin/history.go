package admin

import (
	"context"
	"net/http"
	"net/url"
)

// GroupHistory is who owned which partition of a group when.
type GroupHistory struct {
	Hub   string `json:"hub"`
	Group string `json:"group"`
	From  Time   `json:"from"`
	To    Time   `json:"to"`
	// Spans are by partition, then by time. Where there is none a partition had no owner.
	Spans []OwnershipSpan `json:"spans"`
	// Changes are what else happened to the group: instances that came and went, checkpoints and
	// partitions that operators moved and released; the newest first.
	Changes []Activity `json:"changes"`
	// Incomplete: there was too much to look at, and what was long ago is missing.
	Incomplete bool `json:"incomplete,omitempty"`
}

// OwnershipSpan is how long a partition had an owner.
type OwnershipSpan struct {
	Partition string `json:"partition"`
	Owner     string `json:"owner"`
	From      Time   `json:"from"`
	To        Time   `json:"to"`
}

// GroupHistory asks who owned what during the last span, such as 15m; empty leaves it to the yard.
func (c *Client) GroupHistory(ctx context.Context, hub, group, span string) (GroupHistory, error) {
	r := request{method: http.MethodGet, path: []string{"hubs", hub, "groups", group, "history"}, query: url.Values{}}
	if span != "" {
		r.query.Set("span", span)
	}
	return one[GroupHistory](ctx, c, r)
}

// ForgetInstance removes the presence of an instance that is dead. One that is alive is refused.
func (c *Client) ForgetInstance(ctx context.Context, hub, group, instance string) error {
	return c.call(ctx, http.MethodDelete, []string{"hubs", hub, "groups", group, "instances", instance}, nil, nil)
}
