package v1

import (
	"context"
	"net/http"

	"github.com/eventyard/eventyard/admin"
)

// Storage tells how the yard's storage and certificates are, at all nodes. All methods may be called by many
// goroutines at once.
type Storage interface {
	Storage(ctx context.Context) (admin.Storage, error)
	Certificates(ctx context.Context) (admin.Certificates, error)
	// Check begins to read all events in the background, at a pace. A *frame.Refusal where a check is
	// under way.
	Check(ctx context.Context, q admin.StorageCheckRequest) (admin.StorageCheck, error)
}

func (d *Handler) showStorage(w http.ResponseWriter, r *http.Request) error {
	shown, err := d.cfg.Storage.Storage(r.Context())
	return answer(w, shown, err)
}

func (d *Handler) showCertificates(w http.ResponseWriter, r *http.Request) error {
	shown, err := d.cfg.Storage.Certificates(r.Context())
	return answer(w, shown, err)
}

func (d *Handler) checkStorage(w http.ResponseWriter, r *http.Request) error {
	var q admin.StorageCheckRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Rate < 0 {
		return badRequest("give bytes a second, or leave it out", "the rate is below zero")
	}
	begun, err := d.cfg.Storage.Check(r.Context(), q)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, begun)
}
