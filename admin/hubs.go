package admin

import (
	"context"
	"net/http"
	"net/url"
)

// Hub is a hub as the yard shows it.
type Hub struct {
	Name         string    `json:"name"`
	Partitions   int       `json:"partitions"`
	PartitionIDs []string  `json:"partitionIds"`
	Created      Time      `json:"created"`
	Retention    Retention `json:"retention"`
	Quota        Quota     `json:"quota,omitzero"`
	Groups       []string  `json:"groups"`
	// Stats is nil unless it was asked for.
	Stats *HubStats `json:"stats,omitempty"`
}

// Quota is what may be published in a second; zero: no limit.
type Quota struct {
	Events int   `json:"events,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
}

// Retention says when events are removed; zero keeps forever.
type Retention struct {
	Age   string `json:"age"`
	Bytes int64  `json:"bytes"`
}

// HubRequest creates or changes a hub. Nil leaves a thing as it is, or as usual.
type HubRequest struct {
	Name       string            `json:"name,omitempty"`
	Partitions *int              `json:"partitions,omitempty"`
	Retention  *RetentionRequest `json:"retention,omitempty"`
	Quota      *QuotaRequest     `json:"quota,omitempty"`
	// Groups must exist besides $Default. They are for the configuration of a yard: the API has
	// calls of their own.
	Groups []string `json:"-" key:"groups"`
}

// RetentionRequest has the parts of a retention that are to be set.
type RetentionRequest struct {
	Age   *string `json:"age,omitempty"`
	Bytes *int64  `json:"bytes,omitempty"`
}

// QuotaRequest has the parts of a quota that are to be set.
type QuotaRequest struct {
	Events *int   `json:"events,omitempty"`
	Bytes  *int64 `json:"bytes,omitempty"`
}

// Hubs lists all hubs by name.
func (c *Client) Hubs(ctx context.Context) ([]Hub, error) {
	return list[Hub](ctx, c, "hubs", request{method: http.MethodGet, path: []string{"hubs"}})
}

// Hub shows one hub.
func (c *Client) Hub(ctx context.Context, name string) (Hub, error) {
	return one[Hub](ctx, c, request{method: http.MethodGet, path: []string{"hubs", name}})
}

// CreateHub makes a hub.
func (c *Client) CreateHub(ctx context.Context, r HubRequest) (Hub, error) {
	return one[Hub](ctx, c, request{method: http.MethodPost, path: []string{"hubs"}, body: r})
}

// UpdateHub changes a hub.
func (c *Client) UpdateHub(ctx context.Context, name string, r HubRequest) (Hub, error) {
	return one[Hub](ctx, c, request{method: http.MethodPatch, path: []string{"hubs", name}, body: r})
}

// DeleteHub removes a hub with all its events, for good.
func (c *Client) DeleteHub(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, []string{"hubs", name}, nil, nil)
}

// Partition is what a partition holds now. One that never had an event has -1 as First and Last,
// "-1" as LastOffset and no LastEnqueued.
type Partition struct {
	ID           string `json:"id"`
	First        int64  `json:"first"`
	Last         int64  `json:"last"`
	LastOffset   string `json:"lastOffset"`
	LastEnqueued *Time  `json:"lastEnqueued"`
	Empty        bool   `json:"empty"`
	Bytes        int64  `json:"bytes"`
	Retrieved    Time   `json:"retrieved"`
	// Published is how many events came in a second, over the last minute; nil: it was not asked for.
	Published *float64 `json:"published,omitempty"`
}

// Events is how many events can be read.
func (p Partition) Events() int64 {
	if p.Empty {
		return 0
	}
	return p.Last - p.First + 1
}

// Partition shows one partition of a hub.
func (c *Client) Partition(ctx context.Context, hub, partition string) (Partition, error) {
	return one[Partition](ctx, c, request{method: http.MethodGet, path: []string{"hubs", hub, "partitions", partition}})
}

// Partitions shows all partitions of a hub.
func (c *Client) Partitions(ctx context.Context, hub string) ([]Partition, error) {
	return list[Partition](ctx, c, "partitions", request{method: http.MethodGet, path: []string{"hubs", hub, "partitions"}})
}

// PartitionPage is a part of the partitions of a hub.
type PartitionPage struct {
	Partitions []Partition `json:"partitions"`
	// Total is how many the hub has, and Next the After of the page behind this one; empty: there is none.
	Total int    `json:"total,omitempty"`
	Next  string `json:"next,omitempty"`
}

// PartitionPage shows some partitions of a hub, or some of what it tells of each.
func (c *Client) PartitionPage(ctx context.Context, hub string, q PageQuery) (PartitionPage, error) {
	r := request{method: http.MethodGet, path: []string{"hubs", hub, "partitions"}, query: url.Values{}}
	q.addTo(r.query)
	return one[PartitionPage](ctx, c, r)
}

// PartitionRates is PartitionPage with what is published to each.
func (c *Client) PartitionRates(ctx context.Context, hub string, q PageQuery) (PartitionPage, error) {
	r := request{method: http.MethodGet, path: []string{"hubs", hub, "partitions"}, query: url.Values{"rates": {"true"}}}
	q.addTo(r.query)
	return one[PartitionPage](ctx, c, r)
}

// Group is a consumer group.
type Group struct {
	Name    string `json:"name"`
	Created Time   `json:"created"`
}

// GroupRequest creates a group.
type GroupRequest struct {
	Name string `json:"name"`
}

// Groups lists a hub's groups.
func (c *Client) Groups(ctx context.Context, hub string) ([]Group, error) {
	return list[Group](ctx, c, "groups", request{method: http.MethodGet, path: []string{"hubs", hub, "groups"}})
}

// CreateGroup makes a group.
func (c *Client) CreateGroup(ctx context.Context, hub, group string) (Group, error) {
	return one[Group](ctx, c, request{method: http.MethodPost, path: []string{"hubs", hub, "groups"}, body: GroupRequest{group}})
}

// DeleteGroup removes a group.
func (c *Client) DeleteGroup(ctx context.Context, hub, group string) error {
	return c.call(ctx, http.MethodDelete, []string{"hubs", hub, "groups", group}, nil, nil)
}
