package v1

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// endpoint is where connection strings lead.
type endpoint struct {
	address string // sb://host[:port]/; empty where there is none
	tls     bool
}

// connectionString writes one. Without the emulator's flag every client would speak TLS.
func (e endpoint) connectionString(p access.Policy, key access.Key, hub string) string {
	text := auth.ConnectionString{Endpoint: e.address, Policy: p.Name, Key: p.Primary, Hub: hub, Emulator: !e.tls}
	if key == access.SecondaryKey {
		text.Key = p.Secondary
	}
	return text.String()
}

// usual is the endpoint that fits the yard: plain for development, TLS otherwise; the
// other where the yard has only that.
func (d *Handler) usual(r *http.Request, endpointOf func(*http.Request, bool) string) endpoint {
	tls := !d.cfg.Access.Development()
	if address := endpointOf(r, tls); address != "" {
		return endpoint{address, tls}
	}
	return endpoint{endpointOf(r, !tls), !tls}
}

// choose finds where a connection string leads among the listeners of one kind.
func (d *Handler) choose(r *http.Request, endpointOf func(*http.Request, bool) string, kind string) (endpoint, error) {
	at := d.usual(r, endpointOf)
	switch text := r.URL.Query().Get("tls"); text {
	case "":
	case "true", "1":
		at = endpoint{endpointOf(r, true), true}
	case "false", "0":
		at = endpoint{endpointOf(r, false), false}
	default:
		return at, badRequest("use tls=true or tls=false", "tls=%s says neither yes nor no", text)
	}
	if at.address == "" {
		return at, &frame.Refusal{
			Status: http.StatusNotFound, Code: "no-endpoint", Title: "There is no such listener",
			Detail: "the yard has no " + kind + " that such a connection string could lead to",
			Next:   "GET /api/v1 shows the listeners there are; tls=true asks for TLS, tls=false for none",
		}
	}
	return at, nil
}

// getConnectionString writes the connection string of a policy: one of the hub that is
// named, or else of the namespace. Since that may be any policy, it takes Manage to the
// namespace also where a hub is named.
func (d *Handler) getConnectionString(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	switch text := query.Get("blob"); text {
	case "", "false", "0":
	case "true", "1":
		return d.getBlobConnectionString(w, r)
	default:
		return badRequest("use blob=true or blob=false", "blob=%s says neither yes nor no", text)
	}
	key, err := parseKey(cmp.Or(query.Get("key"), string(access.PrimaryKey)))
	if err != nil {
		return err
	}
	hub := broker.Hub{}
	if name := query.Get("hub"); name != "" {
		if hub, err = d.cfg.Broker.Hub(name); err != nil {
			return err
		}
	}
	policy, err := d.nearestPolicy(hub.Name, cmp.Or(query.Get("policy"), auth.RootPolicy))
	if err != nil {
		return err
	}
	at, err := d.choose(r, d.cfg.Endpoint, "AMQP listener")
	if err != nil {
		return err
	}
	d.reveal(r, access.ObjectOf(policy.Hub, policy.Name))
	return writeJSON(w, http.StatusOK, admin.ConnectionString{ConnectionString: at.connectionString(policy, key, hub.Name)})
}

func (d *Handler) nearestPolicy(hub, name string) (access.Policy, error) {
	if hub != "" {
		p, err := d.cfg.Access.Policy(hub, name)
		if !errors.Is(err, access.ErrNotFound) {
			return p, err
		}
	}
	return d.cfg.Access.Policy("", name)
}
