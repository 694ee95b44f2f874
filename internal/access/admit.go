package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/auth"
)

// Token checks a shared-access signature or a bearer token for an audience, a URI such
// as sb://host/hub or the path alone; empty asks for no audience in particular. The
// grant's scope is what the token was made for. Errors are those of auth; the time of a
// token that has expired comes as an *auth.ExpiredError.
func (k *Keeper) Token(ctx context.Context, token, audience string) (auth.Grant, error) {
	grant, err := k.grant(ctx, token)
	if err != nil {
		return auth.Grant{}, err
	}
	grant = grant.Within(k.hubOf)
	if audience == "" {
		return grant, nil
	}
	path, err := audiencePath(audience)
	if err != nil {
		return auth.Grant{}, err
	}
	if grant.Rights(path) == 0 {
		return auth.Grant{}, fmt.Errorf("%w: it does not cover %.128q", auth.ErrAudience, audience)
	}
	return grant, nil
}

// audiencePath takes what has no scheme for a path alone. Of a bare host that asks for
// more than was meant, never for less.
func audiencePath(audience string) (string, error) {
	if strings.Contains(audience, "://") {
		return auth.Path(audience)
	}
	return auth.PathOf(audience), nil
}

func (k *Keeper) grant(ctx context.Context, token string) (auth.Grant, error) {
	switch {
	case token == "":
		return auth.Grant{}, fmt.Errorf("%w: it is empty", auth.ErrMalformed)
	case len(token) > auth.MaxTokenBytes:
		return auth.Grant{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", auth.ErrMalformed, len(token), auth.MaxTokenBytes)
	case auth.IsSignature(token):
		return k.signature(token)
	case k.anyBearer:
		return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: "any bearer"}, nil
	case k.bearer == nil:
		return auth.Grant{}, fmt.Errorf("%w: no issuer of bearer tokens is configured", auth.ErrUnsupported)
	}
	return k.bearer.Verify(ctx, token)
}

// signature looks for the policy at the namespace and at the hub that the resource lies
// in. The keys are all tried, whichever fits.
func (k *Keeper) signature(token string) (auth.Grant, error) {
	s, err := auth.ParseSignature(token)
	if err != nil {
		return auth.Grant{}, err
	}
	var rights auth.Rights
	for _, r := range k.candidates(s) {
		for _, key := range k.keysOf(r) {
			if s.SignedBy(key) {
				rights |= r.Rights
			}
		}
	}
	if rights == 0 {
		return auth.Grant{}, fmt.Errorf("%w: it fits no key of a policy %.80q", auth.ErrSignature, s.Policy)
	}
	if !time.Now().Before(s.Expires) {
		return auth.Grant{}, &auth.ExpiredError{At: s.Expires}
	}
	return auth.Grant{
		Scopes:  []auth.Scope{{Path: s.Path, Rights: rights}},
		Expires: s.Expires,
		Holder:  s.Policy,
	}, nil
}

// candidates are the policies that may have signed: each reaches what is at or beneath
// its level.
func (k *Keeper) candidates(s auth.Signature) []record {
	levels := []level{{}}
	if at, err := k.level(k.hubOf(s.Path)); err == nil && at.hub != "" {
		levels = append(levels, at)
	}
	live := k.policies.live.Load()
	var found []record
	for _, at := range levels {
		if r, ok := live.byKey[at.key(s.Policy)]; ok {
			found = append(found, r)
		}
	}
	return found
}

// keysOf gives the keys that are good for a policy.
func (k *Keeper) keysOf(r record) []string {
	keys := []string{r.Primary, r.Secondary}
	if k.development && r.Hub == "" && r.Name == auth.RootPolicy {
		keys = append(keys, auth.DevelopmentKey)
	}
	return keys
}

// Key checks a policy's name and key, as SASL PLAIN and HTTP Basic bring them. The
// policy may be the namespace's or a hub's; of several of that name, those whose key it
// is. The error is auth.ErrSignature.
func (k *Keeper) Key(name, key string) (auth.Grant, error) {
	digest := sha256.Sum256([]byte(key))
	var scopes []auth.Scope
	for _, r := range k.policies.live.Load().byName[auth.Fold(name)] {
		fits := 0
		for _, good := range k.keysOf(r) {
			known := sha256.Sum256([]byte(good))
			fits |= subtle.ConstantTimeCompare(digest[:], known[:])
		}
		if fits == 1 && k.inForce(r) {
			scopes = append(scopes, r.scope())
		}
	}
	if len(scopes) == 0 {
		return auth.Grant{}, fmt.Errorf("%w: no policy %.80q has this key", auth.ErrSignature, name)
	}
	return auth.Grant{Scopes: scopes, Holder: name}.Within(k.hubOf), nil
}

// Named gives the rights of a policy without any key: for client certificates, whose
// common name is a policy's of the namespace, or the name of a hub, a slash and a
// policy's of that hub. The error is auth.ErrSignature.
func (k *Keeper) Named(name string) (auth.Grant, error) {
	hub, policy := "", name
	if cut := strings.LastIndexByte(name, '/'); cut >= 0 {
		hub, policy = name[:cut], name[cut+1:]
	}
	at, err := k.level(hub)
	if err == nil {
		if r, ok := k.policies.live.Load().byKey[at.key(policy)]; ok {
			return auth.Grant{Scopes: []auth.Scope{r.scope()}, Holder: name}.Within(k.hubOf), nil
		}
	}
	return auth.Grant{}, fmt.Errorf("%w: there is no policy %.80q", auth.ErrSignature, name)
}

func (r record) scope() auth.Scope { return auth.Scope{Path: r.level.hub, Rights: r.Rights} }

// inForce tells whether a policy's hub is still the one that it was made for.
func (k *Keeper) inForce(r record) bool {
	at, err := k.level(r.Hub)
	return err == nil && at.key(r.Name) == r.key()
}

// maxHubBytes is the most that the name of a hub has.
const maxHubBytes = 256

// hubOf names the hub that a path lies in: the longest beginning that is one, as names of
// hubs may have slashes; empty if there is none.
func (k *Keeper) hubOf(path string) string {
	for path != "" {
		if len(path) <= maxHubBytes {
			if _, exists := k.hub(path); exists {
				return path
			}
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	return ""
}
