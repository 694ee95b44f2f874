package v1

import (
	"net/http"
	"net/url"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// policyJSON is a policy with all its secrets: who may see it at all has Manage.
type policyJSON struct {
	Hub               string                 `json:"hub,omitempty"`
	Name              string                 `json:"name"`
	Rights            []string               `json:"rights"`
	Created           string                 `json:"created"`
	PrimaryKey        string                 `json:"primaryKey"`
	SecondaryKey      string                 `json:"secondaryKey"`
	ConnectionStrings *connectionStringsJSON `json:"connectionStrings,omitempty"`
}

type connectionStringsJSON struct {
	Primary   string `json:"primary"`
	Secondary string `json:"secondary"`
}

// policyRequest is the body that creates a policy. Keys not given are made.
type policyRequest struct {
	Name         string   `json:"name"`
	Rights       []string `json:"rights"`
	PrimaryKey   string   `json:"primaryKey"`
	SecondaryKey string   `json:"secondaryKey"`
}

// The handlers of policies serve those of the namespace and those of a hub alike; which
// it is, the path says.

func (d *Handler) listPolicies(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	policies, err := d.cfg.Access.Policies(hub)
	if err != nil {
		return err
	}
	list := struct {
		Policies []policyJSON `json:"policies"`
	}{Policies: make([]policyJSON, len(policies))}
	for i, p := range policies {
		list.Policies[i] = d.showPolicy(r, p)
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Handler) createPolicy(w http.ResponseWriter, r *http.Request) error {
	var q policyRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	rights, err := auth.ParseRights(q.Rights)
	if err != nil {
		return err
	}
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	made, err := d.cfg.Access.Create(r.Context(), access.Policy{
		Hub: hub, Name: q.Name, Rights: rights, Primary: q.PrimaryKey, Secondary: q.SecondaryKey,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", policyPath(hub, made.Name))
	return writeJSON(w, http.StatusCreated, d.showPolicy(r, made))
}

func policyPath(hub, name string) string {
	if hub == "" {
		return "/api/v1/policies/" + url.PathEscape(name)
	}
	return "/api/v1/hubs/" + url.PathEscape(hub) + "/policies/" + url.PathEscape(name)
}

func (d *Handler) getPolicy(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	p, err := d.cfg.Access.Policy(hub, r.PathValue("policy"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, d.showPolicy(r, p))
}

func (d *Handler) deletePolicy(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	if err := d.cfg.Access.Delete(r.Context(), hub, r.PathValue("policy")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// regeneratePolicy makes one key anew. The other goes on being good, so that clients
// can be moved over to it first.
func (d *Handler) regeneratePolicy(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Key string `json:"key"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	key, err := parseKey(q.Key)
	if err != nil {
		return err
	}
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	p, err := d.cfg.Access.Regenerate(r.Context(), hub, r.PathValue("policy"), key)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, d.showPolicy(r, p))
}

// policyHub gives the name of the hub whose policies are meant, as the hub itself spells
// it; empty for the namespace's.
func (d *Handler) policyHub(r *http.Request) (string, error) {
	name := r.PathValue("hub")
	if name == "" {
		return "", nil
	}
	hub, err := d.cfg.Broker.Hub(name)
	return hub.Name, err
}

func parseKey(text string) (access.Key, error) {
	switch key := access.Key(text); key {
	case access.PrimaryKey, access.SecondaryKey:
		return key, nil
	}
	return "", badRequest("name the key: primary or secondary", "%.64q is neither of a policy's keys", text)
}

func (d *Handler) showPolicy(r *http.Request, p access.Policy) policyJSON {
	shown := policyJSON{
		Hub: p.Hub, Name: p.Name, Rights: p.Rights.Names(), Created: showTime(p.Created),
		PrimaryKey: p.Primary, SecondaryKey: p.Secondary,
	}
	if at := d.usualEndpoint(r); at.address != "" {
		shown.ConnectionStrings = &connectionStringsJSON{
			Primary:   at.connectionString(p, access.PrimaryKey, p.Hub),
			Secondary: at.connectionString(p, access.SecondaryKey, p.Hub),
		}
	}
	return shown
}
