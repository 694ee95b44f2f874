package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Access is what the listener asks of the registry of policies. All methods may be called by
// many goroutines at once.
type Access interface {
	Development() bool

	Token(ctx context.Context, token, audience string) (auth.Grant, error)
	Key(name, key string) (auth.Grant, error)
	// OnChange has f called after every change of the policies, until stop is called and
	// perhaps once more then. f is quick and changes none.
	OnChange(f func()) (stop func())

	Policies(hub string) ([]access.Policy, error)
	Policy(hub, name string) (access.Policy, error)
	Create(ctx context.Context, p access.Policy) (access.Policy, error)
	Regenerate(ctx context.Context, hub, name string, key access.Key) (access.Policy, error)
	Delete(ctx context.Context, hub, name string) error
}

var _ Access = (*access.Registry)(nil)

// Why a request is not let in, besides what is wrong with its token.
var (
	// errNoToken: it has no Authorization header.
	errNoToken = errors.New("the request has no Authorization header")
	// errRights: the token is good for the place, but not for what is to be done there.
	errRights = errors.New("the token gives too few rights")
)

// admission is what a request was let in with, for what and when.
type admission struct {
	grant    auth.Grant
	need     need
	position auth.Entity
	at       time.Time
}

// admissionKey is where a request's context has its admission.
type admissionKey struct{}

// admit lets a request in or says why not. It is the one place where that is decided,
// and comes before anything is read of the request but its head. The request it gives
// carries the admission.
func (d *Handler) admit(rt route, r *http.Request) (*http.Request, error) {
	if rt.need.reach == ofNobody {
		return r, nil
	}
	now := time.Now() // before the token is checked, so that it cannot expire between
	grant, err := d.authenticate(r)
	if err != nil {
		return r, err
	}
	a := admission{grant: grant, need: rt.need, position: positionOf(rt, r), at: now}
	if err := a.check(); err != nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), admissionKey{}, a)), nil
}

func (a admission) check() error { return a.need.check(a.grant, a.position, a.at) }

// grantOf gives what the request was let in with. A request of an open route has none.
func grantOf(r *http.Request) auth.Grant {
	a, _ := r.Context().Value(admissionKey{}).(admission)
	return a.grant
}

// stillLetIn is for requests that take their time: it tells whether what a request was let
// in with stands, and the hub is the one it was let in for. A token that has expired since
// was good when the request began.
func stillLetIn(r *http.Request) error {
	a, ok := r.Context().Value(admissionKey{}).(admission)
	if ok && a.check() != nil {
		return fmt.Errorf("%w, while the request of %q was under way", auth.ErrRevoked, a.grant.Holder)
	}
	return nil
}

// authenticate reads the Authorization header. Nothing else is looked at: a token in a
// query would end up in logs, histories and Referer headers.
func (d *Handler) authenticate(r *http.Request) (auth.Grant, error) {
	given := r.Header.Values("Authorization")
	switch len(given) {
	case 0:
		return auth.Grant{}, errNoToken
	case 1:
	default:
		return auth.Grant{}, fmt.Errorf("%w: the request has %d Authorization headers", auth.ErrMalformed, len(given))
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(given[0]), " ")
	switch strings.ToLower(scheme) {
	case "":
		return auth.Grant{}, errNoToken
	case "basic":
		name, key, ok := r.BasicAuth()
		if !ok {
			return auth.Grant{}, fmt.Errorf("%w: Basic wants the base64 of a policy's name, a colon and its key", auth.ErrMalformed)
		}
		return d.cfg.Access.Key(name, key)
	case "bearer":
		return d.cfg.Access.Token(r.Context(), strings.TrimSpace(rest), "")
	case "sharedaccesssignature":
		return d.cfg.Access.Token(r.Context(), "SharedAccessSignature "+strings.TrimSpace(rest), "")
	default:
		return auth.Grant{}, fmt.Errorf("%w: the Authorization header begins with %.32q", auth.ErrUnsupported, scheme)
	}
}

// challenges are the ways to be let in, in the order in which they are recommended.
var challenges = []string{`SharedAccessSignature realm="eventyard"`, `Bearer realm="eventyard"`, `Basic realm="eventyard", charset="UTF-8"`}

// turnAway answers a request that is not let in. The Event Hubs REST API knows no 403
// and puts a word of its own before the detail.
func (d *Handler) turnAway(w http.ResponseWriter, r *http.Request, rt route, err error) {
	p := judge(err)
	d.metrics.refused.WithLabelValues(p.kind()).Inc()
	if rt.eventHubs && p.Status == http.StatusForbidden {
		p.Status = http.StatusUnauthorized
	}
	if p.Status == http.StatusUnauthorized {
		w.Header()["Www-Authenticate"] = challenges
		p.Next += d.howToEnter()
	}
	if word := serviceWords[p.kind()]; rt.eventHubs && !strings.HasPrefix(p.Detail, word) {
		p.Detail = word + p.Detail
	}
	d.report(w, r, err, p)
}

// serviceWords begin the details of the Event Hubs REST API; people search for them.
var serviceWords = map[string]string{
	"no-token":            "MissingToken: ",
	"malformed-token":     "MalformedToken: ",
	"invalid-signature":   "InvalidSignature: ",
	"expired-token":       "ExpiredToken: ",
	"revoked-token":       "RevokedToken: ",
	"wrong-audience":      "InvalidAudience: ",
	"unsupported-token":   "UnsupportedToken: ",
	"insufficient-rights": "Unauthorized access. ",
}

// howToEnter ends what a client is told that showed nothing, or nothing good. Where the
// well-known key works, it is no secret.
func (d *Handler) howToEnter() string {
	if d.cfg.Access.Development() {
		return "; with curl on this machine: curl -u " + auth.RootPolicy + ":" + auth.DevelopmentKey + " URL"
	}
	return "; with curl: curl -u POLICY:KEY URL. The key of " + auth.RootPolicy +
		" is in the file connection-string of the yard's data folder"
}
