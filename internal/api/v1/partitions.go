package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

func showPartition(p broker.PartitionInfo) admin.Partition {
	return admin.Partition{
		ID: p.ID, First: int64(p.First), Last: int64(p.Last), LastOffset: p.LastOffset, LastEnqueued: showTimeIfAny(p.LastTime),
		Empty: p.Empty, Bytes: p.Bytes, Retrieved: admin.Time{Time: p.Retrieved},
	}
}

func (d *Handler) listPartitions(w http.ResponseWriter, r *http.Request) error {
	partitions, err := d.cfg.Broker.Partitions(r.Context(), r.PathValue("hub"))
	return answerList(w, "partitions", partitions, showPartition, err)
}

func (d *Handler) getPartition(w http.ResponseWriter, r *http.Request) error {
	info, err := d.cfg.Broker.Partition(r.Context(), r.PathValue("hub"), r.PathValue("partition"))
	return answer(w, showPartition(info), err)
}
