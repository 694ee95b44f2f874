package v1

import (
	"context"
	"net/http"

	"github.com/eventyard/eventyard/admin"
)

const (
	defaultConnections = 100
	maxConnections     = 1000
)

// Connections gives a page of the connections to all nodes, behind an id.
type Connections func(ctx context.Context, after string, limit int) (admin.Connections, error)

func (d *Handler) listConnections(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := positive(query, "limit", defaultConnections)
	if err != nil {
		return err
	}
	after := query.Get("after")
	if len(after) > 256 {
		return badRequest("give the next of an earlier page, or leave it out", "after is no id of a connection")
	}
	page, err := d.cfg.Connections(r.Context(), after, min(limit, maxConnections))
	return answer(w, page, err)
}
