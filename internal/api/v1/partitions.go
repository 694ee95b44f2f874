package v1

import (
	"cmp"
	"context"
	"net/http"

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
	rows := make([]any, len(found))
	for i, p := range found {
		rows[i] = wanted.choose(showPartition(p))
	}
	return wanted.writeRows(w, "partitions", rows, len(ids), next)
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
