package frame

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// ErrNoToken: the request has no Authorization header.
var ErrNoToken = errors.New("the request has no Authorization header")

// Challenges are the ways to be let in, in the order in which they are recommended.
var Challenges = []string{`SharedAccessSignature realm="eventyard"`, `Bearer realm="eventyard"`, `Basic realm="eventyard", charset="UTF-8"`}

// Access knows who may do what. All methods may be called by many goroutines at once.
type Access interface {
	Token(ctx context.Context, token, audience string) (auth.Grant, error)
	Key(ctx context.Context, name, key string) (auth.Grant, error)
}

// grantKey is where the context of a request from inside the process has its grant.
type grantKey struct{}

// WithGrant lets in a request that comes from inside the process, in place of a header: the console's,
// whose session was looked at already. Only package server calls it, since whoever does decides who is
// let in; nothing that a client sends gets into a context.
func WithGrant(ctx context.Context, g auth.Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// FromInside tells whether a request comes from inside the process, with a grant in place of a credential.
func FromInside(r *http.Request) bool {
	_, ok := r.Context().Value(grantKey{}).(auth.Grant)
	return ok
}

// Authenticate reads the Authorization header. Nothing else of what a client sends is looked at: a
// token in a query would end up in logs, histories and Referer headers, and a cookie is sent by
// whichever page has the browser ask.
func Authenticate(access Access, r *http.Request) (auth.Grant, error) {
	if g, ok := r.Context().Value(grantKey{}).(auth.Grant); ok {
		return g, nil
	}
	given := r.Header.Values("Authorization")
	switch len(given) {
	case 0:
		return auth.Grant{}, ErrNoToken
	case 1:
	default:
		return auth.Grant{}, fmt.Errorf("%w: the request has %d Authorization headers", auth.ErrMalformed, len(given))
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(given[0]), " ")
	switch strings.ToLower(scheme) {
	case "":
		return auth.Grant{}, ErrNoToken
	case "basic":
		name, key, ok := r.BasicAuth()
		if !ok {
			return auth.Grant{}, fmt.Errorf("%w: Basic wants the base64 of a policy's name, a colon and its key", auth.ErrMalformed)
		}
		return access.Key(r.Context(), name, key)
	case "bearer":
		return access.Token(r.Context(), strings.TrimSpace(rest), "")
	case "sharedaccesssignature":
		return access.Token(r.Context(), "SharedAccessSignature "+strings.TrimSpace(rest), "")
	}
	return auth.Grant{}, fmt.Errorf("%w: the Authorization header begins with %.32q", auth.ErrUnsupported, scheme)
}

// Address is where a request came from, without its port.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// failedLogin reports whether a request was refused for the key or token that it shows, by
// whichever API: for none at all, or for one with too few rights, nobody has to wait.
func failedLogin(r *http.Request, said Refusal) bool {
	if said.Status != http.StatusUnauthorized && said.Code != "AuthenticationFailed" {
		return false
	}
	for _, header := range []string{"Authorization", "Aeg-Sas-Key", "Aeg-Sas-Token"} {
		if r.Header.Get(header) != "" {
			return true
		}
	}
	query := r.URL.Query()
	return query.Has("sig") || query.Has("aeg-sas-key")
}
