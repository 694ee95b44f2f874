package v1

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Bounds of a density: how many buckets it may have, and how often partitions are asked for the
// number at a time, all together.
const (
	defaultBuckets = 60
	maxBuckets     = 500
	maxSeeks       = 8_192
)

// showDensity counts events by when they were enqueued: the difference of the numbers at the borders
// of a bucket, which the time index finds without reading what is in between.
func (d *Handler) showDensity(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	partitions, err := choosePartitions(query["partition"], hub)
	if err != nil {
		return err
	}
	n, err := positive(query, "buckets", defaultBuckets)
	if err != nil {
		return err
	}
	c := census{broker: d.cfg.Broker, hub: hub.Name, left: maxSeeks}
	if err := c.span(r.Context(), query, partitions); err != nil {
		return err
	}
	c.counts = make([]int64, min(n, maxBuckets))
	for _, p := range partitions {
		if err := c.add(r.Context(), p); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, c.show())
}

// census is one density in the making.
type census struct {
	broker   Broker
	hub      string
	from, to time.Time
	counts   []int64
	left     int // seeks
}

// span reads which time is meant: from the oldest event to now, if nothing is said.
func (c *census) span(ctx context.Context, query url.Values, partitions []string) (err error) {
	now := time.Now()
	c.to = now
	if text := query.Get("to"); text != "" {
		if c.to, err = parseMoment(text, now); err != nil {
			return err
		}
	}
	if text := query.Get("from"); text != "" {
		c.from, err = parseMoment(text, now)
	} else {
		c.from, err = c.oldest(ctx, partitions)
	}
	if err == nil && !c.from.Before(c.to) {
		return badRequest("give a from that is before to", "from %s is not before to %s", c.from.Format(time.RFC3339), c.to.Format(time.RFC3339))
	}
	return err
}

// oldest is when the first event was enqueued that is kept; an hour ago, where there is none.
func (c *census) oldest(ctx context.Context, partitions []string) (time.Time, error) {
	oldest := c.to
	for _, p := range partitions {
		cursor, err := c.broker.Cursor(ctx, c.hub, broker.DefaultGroup, p, eventlog.Earliest())
		if err != nil {
			return oldest, err
		}
		run, err := cursor.TryNext(ctx)
		_ = cursor.Close() // it was only read
		if err != nil {
			return oldest, err
		}
		if run.Len() > 0 && run.Time.Before(oldest) {
			oldest = run.Time
		}
	}
	if oldest.Equal(c.to) {
		return c.to.Add(-time.Hour), nil
	}
	return oldest, nil
}

// border is where bucket i begins.
func (c *census) border(i int) time.Time {
	return c.from.Add(time.Duration(float64(c.to.Sub(c.from)) * float64(i) / float64(len(c.counts))))
}

// add counts one partition: by halves, so that a span without events costs nothing more.
func (c *census) add(ctx context.Context, partition string) error {
	first, err := c.number(ctx, partition, c.from)
	if err != nil {
		return err
	}
	last, err := c.number(ctx, partition, c.to)
	if err != nil {
		return err
	}
	return c.divide(ctx, partition, 0, len(c.counts), first, last)
}

func (c *census) divide(ctx context.Context, partition string, low, high int, first, last int64) error {
	switch {
	case first >= last:
		return nil
	case high-low == 1:
		c.counts[low] += last - first
		return nil
	}
	middle := (low + high) / 2
	at, err := c.number(ctx, partition, c.border(middle))
	if err != nil {
		return err
	}
	at = min(max(at, first), last)
	if err := c.divide(ctx, partition, low, middle, first, at); err != nil {
		return err
	}
	return c.divide(ctx, partition, middle, high, at, last)
}

// number is that of the first event at a time or later.
func (c *census) number(ctx context.Context, partition string, at time.Time) (int64, error) {
	if c.left--; c.left < 0 {
		return 0, badRequest("ask for fewer buckets, or for one partition with partition=", "so many buckets of so many partitions are too much work")
	}
	cursor, err := c.broker.Cursor(ctx, c.hub, broker.DefaultGroup, partition, eventlog.Since(at))
	if err != nil {
		return 0, err
	}
	defer cursor.Close()
	return int64(cursor.At()), nil
}

func (c *census) show() admin.Density {
	shown := admin.Density{Hub: c.hub, From: c.from.UTC(), To: c.to.UTC(), Buckets: make([]admin.DensityBucket, len(c.counts))}
	for i, n := range c.counts {
		shown.Buckets[i] = admin.DensityBucket{From: c.border(i).UTC(), Events: n}
		shown.Total += n
	}
	return shown
}
