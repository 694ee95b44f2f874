package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/admin"
)

// releasePartition takes a partition from whoever has it.
func (d *Handler) releasePartition(w http.ResponseWriter, r *http.Request) error {
	released, err := d.cfg.Groups.Release(r.Context(), r.PathValue("hub"), r.PathValue("group"), r.PathValue("partition"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, admin.Released{
		Partition: released.Partition, Owner: released.Lease.Owner, Epoch: released.Lease.Epoch, Disconnected: released.Disconnected,
	})
}
