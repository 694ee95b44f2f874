package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// partitionJSON is a partition's runtime information. A partition that never had an
// event shows -1, -1, "-1" and null, as the AMQP listener does.
type partitionJSON struct {
	ID           string            `json:"id"`
	First        eventlog.Sequence `json:"first"`
	Last         eventlog.Sequence `json:"last"`
	LastOffset   string            `json:"lastOffset"`
	LastEnqueued *string           `json:"lastEnqueued"`
	Empty        bool              `json:"empty"`
	Bytes        int64             `json:"bytes"`
	Retrieved    string            `json:"retrieved"`
}

func showPartition(p broker.PartitionInfo) partitionJSON {
	shown := partitionJSON{
		ID:         p.ID,
		First:      p.First,
		Last:       p.Last,
		LastOffset: p.LastOffset,
		Empty:      p.Empty,
		Bytes:      p.Bytes,
		Retrieved:  showTime(p.Retrieved),
	}
	if !p.LastTime.IsZero() {
		last := showTime(p.LastTime)
		shown.LastEnqueued = &last
	}
	return shown
}

func (d *Handler) listPartitions(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.Hub(r.PathValue("hub"))
	if err != nil {
		return err
	}
	list := struct {
		Partitions []partitionJSON `json:"partitions"`
	}{Partitions: make([]partitionJSON, 0, hub.Partitions)}
	for _, id := range hub.PartitionIDs() {
		info, err := d.cfg.Broker.Partition(r.Context(), hub.Name, id)
		if err != nil {
			return err
		}
		list.Partitions = append(list.Partitions, showPartition(info))
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Handler) getPartition(w http.ResponseWriter, r *http.Request) error {
	info, err := d.cfg.Broker.Partition(r.Context(), r.PathValue("hub"), r.PathValue("partition"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, showPartition(info))
}
