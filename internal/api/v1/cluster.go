package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/api/frame"
)

func (d *Handler) getCluster(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, d.cfg.Cluster(r.Context()))
}

// getCA gives the certificate of the authority. It is open to all: clients need it before they can be
// let in over TLS, and every handshake shows who signed.
func (d *Handler) getCA(w http.ResponseWriter, _ *http.Request) error {
	text, err := d.cfg.CA()
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return &frame.Refusal{
			Status: http.StatusNotFound,
			Code:   "no-authority",
			Title:  "The yard has no authority of its own",
			Detail: "this yard has no listener with TLS, or its certificate is the operator's",
			Next:   "where it is the operator's, trust the authority that signed it: commands take its file by --ca FILE",
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="eventyard-ca.pem"`)
	_, _ = w.Write(text) // who does not read it to its end has gone
	return nil
}
