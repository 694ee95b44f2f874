package v1

import (
	"fmt"
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
)

// healthy says that the process is alive and answers, nothing more.
func (d *Handler) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "healthy"})
}

// ready says whether requests may be sent here: not before start is done, and not
// once the yard is stopping, so that a balancer looks elsewhere in time.
func (d *Handler) ready(w http.ResponseWriter, _ *http.Request) error {
	if d.cfg.Stopping.Err() != nil {
		return fmt.Errorf("not ready: %w", frame.ErrStopping)
	}
	if err := d.cfg.Ready(); err != nil {
		return &frame.Refusal{
			Status: http.StatusServiceUnavailable,
			Code:   "not-ready",
			Title:  "The yard is not ready yet",
			Detail: err.Error(),
			Next:   "ask again in a moment",
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// info says who answers here.
func (d *Handler) info(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, admin.Info{
		Name:      "eventyard",
		Version:   d.cfg.Version,
		Namespace: d.cfg.Broker.Namespace(),
		Engine:    d.cfg.Engine,
		Listeners: d.cfg.Listeners(),
		OpenAPI:   "/api/v1/openapi.json",
	})
}
