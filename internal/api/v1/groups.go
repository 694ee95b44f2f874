package v1

import (
	"net/http"
	"net/url"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

func showGroup(g broker.Group) admin.Group {
	return admin.Group{Name: g.Name, Created: admin.Time{Time: g.Created}}
}

func (d *Handler) listGroups(w http.ResponseWriter, r *http.Request) error {
	groups, err := d.cfg.Broker.Groups(r.Context(), r.PathValue("hub"))
	return answerList(w, "groups", groups, showGroup, err)
}

func (d *Handler) createGroup(w http.ResponseWriter, r *http.Request) error {
	var q admin.GroupRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	hub := r.PathValue("hub")
	group, err := d.cfg.Broker.CreateGroup(r.Context(), hub, q.Name)
	if err != nil {
		return err
	}
	return created(w, "hubs/"+url.PathEscape(hub)+"/groups/"+url.PathEscape(group.Name), showGroup(group))
}

func (d *Handler) getGroup(w http.ResponseWriter, r *http.Request) error {
	group, err := d.cfg.Broker.Group(r.Context(), r.PathValue("hub"), r.PathValue("group"))
	return answer(w, showGroup(group), err)
}

func (d *Handler) deleteGroup(w http.ResponseWriter, r *http.Request) error {
	return done(w, d.cfg.Broker.DeleteGroup(r.Context(), r.PathValue("hub"), r.PathValue("group")))
}
