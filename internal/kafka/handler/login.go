package handler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// connectionString is the user whose password is a whole connection string, as with Event Hubs.
const connectionString = "$ConnectionString"

// Plain takes a policy's name and key, or a connection string.
func (h *Handler) Plain(ctx context.Context, from, user, password string) (any, error) {
	g, err := h.plain(admission.WithRemote(ctx, from), user, password)
	return h.admit(ctx, from, g, err)
}

func (h *Handler) plain(ctx context.Context, user, password string) (auth.Grant, error) {
	if user != connectionString {
		return h.cfg.Access.Key(ctx, user, password)
	}
	c, err := auth.ParseConnectionString(password)
	switch {
	case err != nil:
		return auth.Grant{}, err
	case c.Signature != "":
		return h.cfg.Access.Token(ctx, c.Signature, "")
	case c.Hub == "":
		return h.cfg.Access.Key(ctx, c.Policy, c.Key)
	}
	// What the string allows for one hub is what a signature by its key would.
	g, err := h.cfg.Access.Token(ctx, auth.Sign(c.Endpoint+c.Hub, c.Policy, c.Key, time.Now().Add(time.Hour)), "")
	g.Expires = time.Time{}
	return g, err
}

// Passwords gives the keys of the policies of a name, for SCRAM: who knows one of them is let in by Plain.
func (h *Handler) Passwords(ctx context.Context, from, user string) ([]string, error) {
	keys, err := h.cfg.Access.Keys(admission.WithRemote(ctx, from), user)
	if err != nil {
		return nil, unchecked(err)
	}
	return keys, nil
}

// Bearer takes a signature, or a token of an issuer.
func (h *Handler) Bearer(ctx context.Context, from, token string) (any, time.Time, error) {
	g, err := h.cfg.Access.Token(admission.WithRemote(ctx, from), token, "")
	identity, err := h.admit(ctx, from, g, err)
	return identity, g.Expires, err
}

// External takes a client certificate whose common name is a policy's.
func (h *Handler) External(ctx context.Context, from string, state tls.ConnectionState) (any, error) {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil, errors.New("log in by certificate: none was verified")
	}
	g, err := h.cfg.Access.Named(admission.WithRemote(ctx, from), state.VerifiedChains[0][0].Subject.CommonName)
	return h.admit(ctx, from, g, err)
}

// admit refuses whose key or token is not good, and who may do nothing here: the right Metrics is for
// HTTP.
func (h *Handler) admit(ctx context.Context, from string, g auth.Grant, err error) (any, error) {
	switch {
	case errors.Is(err, auth.ErrUnavailable):
		return nil, unchecked(err)
	case err != nil:
		h.cfg.Access.Refused(ctx, from, err)
		return nil, fmt.Errorf("log in: %w", err)
	case g.Stands() && !g.Opens():
		return nil, fmt.Errorf("log in as %.64q: the policy opens no hub: it needs Send, Listen or Manage", g.Holder)
	}
	return g, nil
}

// unchecked has a client come again where nobody can say just now whether what it shows is good.
func unchecked(err error) error { return fmt.Errorf("log in: %w: %w", kafka.ErrUnchecked, err) }
