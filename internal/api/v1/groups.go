package v1

import (
	"net/http"
	"net/url"

	"github.com/eventyard/eventyard/internal/hubs/broker"
)

type groupJSON struct {
	Name    string `json:"name"`
	Created string `json:"created"`
}

func showGroup(g broker.Group) groupJSON {
	return groupJSON{Name: g.Name, Created: showTime(g.Created)}
}

func (d *Handler) listGroups(w http.ResponseWriter, r *http.Request) error {
	groups, err := d.cfg.Broker.Groups(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	list := struct {
		Groups []groupJSON `json:"groups"`
	}{Groups: make([]groupJSON, len(groups))}
	for i, g := range groups {
		list.Groups[i] = showGroup(g)
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Handler) createGroup(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Name string `json:"name"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	hub := r.PathValue("hub")
	group, err := d.cfg.Broker.CreateGroup(r.Context(), hub, q.Name)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/hubs/"+url.PathEscape(hub)+"/groups/"+url.PathEscape(group.Name))
	return writeJSON(w, http.StatusCreated, showGroup(group))
}

func (d *Handler) getGroup(w http.ResponseWriter, r *http.Request) error {
	group, err := d.cfg.Broker.Group(r.Context(), r.PathValue("hub"), r.PathValue("group"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, showGroup(group))
}

func (d *Handler) deleteGroup(w http.ResponseWriter, r *http.Request) error {
	if err := d.cfg.Broker.DeleteGroup(r.Context(), r.PathValue("hub"), r.PathValue("group")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
