package v1

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
)

// The handlers of policies serve those of the namespace and those of a hub alike; which
// it is, the path says.

func (d *Handler) listPolicies(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	policies, err := d.cfg.Access.Policies(hub)
	keys := asksForKeys(r)
	if err == nil && len(policies) > 0 && keys {
		d.reveal(r, strings.TrimSuffix(access.ObjectOf(hub, ""), "/"))
	}
	return answerList(w, "policies", policies, func(p access.Policy) admin.Policy {
		shown := d.showPolicy(r, p)
		if !keys {
			shown.PrimaryKey, shown.SecondaryKey, shown.ConnectionStrings = "", "", nil
		}
		return shown
	}, err)
}

// asksForKeys tells whether keys are wanted: whoever shows none asks without, and then none was seen.
func asksForKeys(r *http.Request) bool {
	keys := r.URL.Query().Get("keys")
	return keys == "" || keys == "true"
}

func (d *Handler) createPolicy(w http.ResponseWriter, r *http.Request) error {
	var q admin.PolicyRequest
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
	asked := access.Policy{Hub: hub, Name: q.Name, Rights: rights, Primary: q.PrimaryKey, Secondary: q.SecondaryKey}
	if err := spec.CheckQuota(q.Quota); err != nil {
		return fmt.Errorf("create policy %q: %w: %w", q.Name, access.ErrInvalid, err)
	}
	spec.ApplyQuota(q.Quota, &asked.Quota)
	made, err := d.cfg.Access.Create(r.Context(), asked)
	if err != nil {
		return err
	}
	location := "policies/" + url.PathEscape(made.Name)
	if hub != "" {
		location = "hubs/" + url.PathEscape(hub) + "/" + location
	}
	return created(w, location, d.showPolicy(r, made))
}

func (d *Handler) getPolicy(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	p, err := d.cfg.Access.Policy(hub, r.PathValue("policy"))
	if err == nil {
		d.reveal(r, access.ObjectOf(p.Hub, p.Name))
	}
	return answer(w, d.showPolicy(r, p), err)
}

// updatePolicy changes the quota, which is all that can be changed.
func (d *Handler) updatePolicy(w http.ResponseWriter, r *http.Request) error {
	var q admin.PolicyChange
	if err := readJSON(r, &q); err != nil {
		return err
	}
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	if err := spec.CheckQuota(q.Quota); err != nil {
		return fmt.Errorf("limit policy %q: %w: %w", r.PathValue("policy"), access.ErrInvalid, err)
	}
	p, err := d.cfg.Access.Limit(r.Context(), hub, r.PathValue("policy"), func(l *quota.Limit) { spec.ApplyQuota(q.Quota, l) })
	return answer(w, d.showPolicy(r, p), err)
}

func (d *Handler) deletePolicy(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.policyHub(r)
	if err != nil {
		return err
	}
	return done(w, d.cfg.Access.Delete(r.Context(), hub, r.PathValue("policy")))
}

// regeneratePolicy makes one key anew. The other goes on being good, so that clients
// can be moved over to it first.
func (d *Handler) regeneratePolicy(w http.ResponseWriter, r *http.Request) error {
	var q admin.KeyChoice
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
	return answer(w, d.showPolicy(r, p), err)
}

// policyHub gives the name of the hub whose policies are meant, as the hub itself spells
// it; empty for the namespace's.
func (d *Handler) policyHub(r *http.Request) (string, error) {
	name := r.PathValue("hub")
	if name == "" {
		return "", nil
	}
	hub, err := d.cfg.Broker.LookUp(r.Context(), name)
	return hub.Name, err
}

func parseKey(text string) (access.Key, error) {
	switch key := access.Key(text); key {
	case access.PrimaryKey, access.SecondaryKey:
		return key, nil
	}
	return "", badRequest("name the key: primary or secondary", "%.64q is neither of a policy's keys", text)
}

// showPolicy shows a policy with all its secrets: who may see it at all has Manage.
func (d *Handler) showPolicy(r *http.Request, p access.Policy) admin.Policy {
	shown := admin.Policy{
		Hub: p.Hub, Name: p.Name, Rights: p.Rights.Names(), Created: admin.Time{Time: p.Created},
		PrimaryKey: p.Primary, SecondaryKey: p.Secondary, Quota: spec.ShowQuota(p.Quota),
	}
	if at := d.usual(r, d.cfg.Endpoint); at.address != "" {
		shown.ConnectionStrings = &admin.ConnectionStrings{
			Primary:   at.connectionString(p, access.PrimaryKey, p.Hub),
			Secondary: at.connectionString(p, access.SecondaryKey, p.Hub),
		}
	}
	return shown
}
