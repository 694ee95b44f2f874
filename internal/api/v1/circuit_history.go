package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/api/spec"
)

func (d *Handler) circuitHistory(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	h, err := d.cfg.Functions.CircuitHistory(r.Context(), query.Get("hub"), query.Get("group"), r.PathValue("function"))
	if err != nil {
		return err
	}
	shown := admin.CircuitHistory{
		Circuit: define.ShowCircuit(h.Circuit), Heard: spec.TimeIfAny(h.Since), Opening: h.Opening,
		Changes: make([]admin.CircuitChange, len(h.Changes)), Seconds: make([]admin.CircuitSecond, len(h.Seconds)),
	}
	for i, c := range h.Changes {
		shown.Changes[i] = admin.CircuitChange{
			At: c.Since.UTC(), State: string(c.State), Term: c.Term, Incident: c.Incident, By: c.By, Reason: c.Reason, Failures: c.Failures,
		}
	}
	for i, s := range h.Seconds {
		shown.Seconds[i] = admin.CircuitSecond{At: s.At, Failures: s.Count}
	}
	return writeJSON(w, http.StatusOK, shown)
}
