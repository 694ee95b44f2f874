package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Density is how many events of a hub were enqueued when, as far as they are kept.
type Density struct {
	Hub  string    `json:"hub"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Total is the sum of all buckets, which are equally long, the oldest first.
	Total   int64           `json:"total"`
	Buckets []DensityBucket `json:"buckets"`
}

// DensityBucket is the events from a time on, up to the next bucket's.
type DensityBucket struct {
	From   time.Time `json:"from"`
	Events int64     `json:"events"`
}

// DensityQuery chooses a span of time; empty fields: from the oldest event to now, in 60 buckets.
// From and To are times, or how long ago.
type DensityQuery struct {
	From, To  string
	Partition string
	Buckets   int
}

// Density counts the events of a hub by when they were enqueued.
func (c *Client) Density(ctx context.Context, hub string, q DensityQuery) (Density, error) {
	v := url.Values{}
	for name, value := range map[string]string{"from": q.From, "to": q.To, "partition": q.Partition} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Buckets > 0 {
		v.Set("buckets", strconv.Itoa(q.Buckets))
	}
	return one[Density](ctx, c, request{method: http.MethodGet, path: []string{"hubs", hub, "density"}, query: v})
}
