package v1

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/parallel"
)

// looksAtOnce bounds how many partitions of a page are looked at together.
const looksAtOnce = 8

func showPartition(p broker.PartitionInfo) admin.Partition {
	return admin.Partition{
		ID: p.ID, First: int64(p.First), Last: int64(p.Last), LastOffset: p.LastOffset, LastEnqueued: showTimeIfAny(p.LastTime),
		Empty: p.Empty, Bytes: p.Bytes, Retrieved: admin.Time{Time: p.Retrieved},
	}
}

func (d *Handler) listPartitions(w http.ResponseWriter, r *http.Request) error {
	wanted, err := readPart[admin.Partition](r.URL.Query())
	if err != nil {
		return err
	}
	rates, err := wantsRates(r.URL.Query().Get("rates"))
	if err != nil {
		return err
	}
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	ids := hub.PartitionIDs()
	from, to, next, err := wanted.window(ids)
	if err != nil {
		return err
	}
	found, err := d.lookAt(r.Context(), hub, ids[from:to])
	if err != nil {
		return err
	}
	shown := make([]admin.Partition, len(found))
	for i, p := range found {
		shown[i] = showPartition(p)
	}
	if rates {
		if err := d.addRates(r.Context(), hub.Name, found, shown); err != nil {
			return err
		}
	}
	rows := make([]any, len(found))
	for i, p := range shown {
		rows[i] = wanted.choose(p)
	}
	return wanted.writeRows(w, "partitions", rows, len(ids), next)
}

func wantsRates(text string) (bool, error) {
	switch text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, badRequest("use rates=true, or leave it out", "rates=%.64s says neither yes nor no", text)
}

// ratesOver is how far back the rates of partitions reach.
const ratesOver = time.Minute

// addRates adds how many events came to each partition in a second: by the number that the time index has for a
// minute ago, whichever node they came through. A partition that has got none since is not asked.
func (d *Handler) addRates(ctx context.Context, hub string, found []broker.PartitionInfo, shown []admin.Partition) error {
	errs, from := make([]error, len(found)), time.Now().Add(-ratesOver)
	parallel.Each(len(found), looksAtOnce, func(i int) {
		p, rate := found[i], 0.
		if !p.Empty && p.LastTime.After(from) {
			c := census{broker: d.cfg.Broker, hub: hub, left: 1}
			var then int64
			if then, errs[i] = c.number(ctx, p.ID, from); errs[i] == nil {
				rate = float64(max(int64(p.Last)+1-then, 0)) / ratesOver.Seconds()
			}
		}
		shown[i].Published = &rate
	})
	return cmp.Or(errs...)
}

// lookAt tells what some partitions of a hub hold, in their order, and looks at no others.
func (d *Handler) lookAt(ctx context.Context, hub broker.Hub, ids []string) ([]broker.PartitionInfo, error) {
	if len(ids) == hub.Partitions {
		return d.cfg.Broker.Partitions(ctx, hub.Name)
	}
	all, errs := make([]broker.PartitionInfo, len(ids)), make([]error, len(ids))
	parallel.Each(len(ids), looksAtOnce, func(i int) { all[i], errs[i] = d.cfg.Broker.Partition(ctx, hub.Name, ids[i]) })
	return all, cmp.Or(errs...)
}

func (d *Handler) getPartition(w http.ResponseWriter, r *http.Request) error {
	info, err := d.cfg.Broker.Partition(r.Context(), r.PathValue("hub"), r.PathValue("partition"))
	return answer(w, showPartition(info), err)
}
