package v1

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
)

// Access is what the listener asks of the registry of policies. All methods may be called by
// many goroutines at once.
type Access interface {
	frame.Access
	Development() bool
	// Quota gives the meter of what an account publishes; nil: it has none.
	Quota(account string) *quota.Meter

	// OnChange has f called after every change of the policies, until stop is called and
	// perhaps once more then. f is quick and changes none.
	OnChange(f func()) (stop func())

	Policies(hub string) ([]access.Policy, error)
	Policy(hub, name string) (access.Policy, error)
	Create(ctx context.Context, p access.Policy) (access.Policy, error)
	Regenerate(ctx context.Context, hub, name string, key access.Key) (access.Policy, error)
	Limit(ctx context.Context, hub, name string, how func(*quota.Limit)) (access.Policy, error)
	Delete(ctx context.Context, hub, name string) error

	Account() access.Account
	LimitAccount(ctx context.Context, how func(*quota.Limit)) (access.Account, error)
	RegenerateAccount(ctx context.Context, key access.Key) (access.Account, error)
	AllowRootKeys(ctx context.Context, allow bool) (access.Account, error)
}

var _ Access = (*access.Registry)(nil)

// admission is what a request was let in with, for what and when.
type admission struct {
	grant  auth.Grant
	need   frame.Need
	entity auth.Entity
	at     time.Time
}

// admissionKey is where a request's context has its admission.
type admissionKey struct{}

func (a admission) check() error { return a.need.Check(a.grant, a.entity, a.at) }

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
