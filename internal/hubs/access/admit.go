package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Token checks a shared-access signature or a bearer token for an audience, a URI such
// as sb://host/hub; empty asks for no audience in particular. The grant's scope is what
// the token was made for. Errors are those of auth; the time of a token that has expired
// comes as an *auth.ExpiredError.
//
// What a signature grants stands on the policy, on the key that signed it and on the hub
// as they are now; what a bearer token grants stands on the hub. Before a signature is refused for its
// policy or key the store may be asked (fresh.go), and for a hub that this node does not know: what is granted
// for none would end when it hears of one. ctx says by which address it was shown (admission.WithRemote).
func (k *Registry) Token(ctx context.Context, token, audience string) (auth.Grant, error) {
	grant, err := k.grant(ctx, token)
	if hub := unknownHub(grant); err == nil && hub != "" && k.others.mayLook(ctx) {
		if err = k.others.lookForHub(ctx, hub); err == nil {
			grant, err = k.grant(ctx, token)
		}
	}
	if err != nil {
		return auth.Grant{}, err
	}
	grant = grant.While(k.stands)
	if audience == "" {
		return grant, nil
	}
	path, err := auth.Path(audience)
	if err != nil {
		return auth.Grant{}, err
	}
	if grant.Rights(auth.EntityOf(path))&auth.Manage == 0 { // Metrics is a right to no entity
		return auth.Grant{}, fmt.Errorf("%w: it does not cover %.128q", auth.ErrAudience, audience)
	}
	return grant, nil
}

// unknownHub is a hub that was not known when something of it was granted; empty if there is none.
func unknownHub(g auth.Grant) string {
	for _, s := range g.Scopes {
		if s.Basis.Hub == 0 {
			return auth.HubOf(s.Path)
		}
	}
	return ""
}

func (k *Registry) grant(ctx context.Context, token string) (auth.Grant, error) {
	switch {
	case token == "":
		return auth.Grant{}, fmt.Errorf("%w: it is empty", auth.ErrMalformed)
	case len(token) > auth.MaxTokenBytes:
		return auth.Grant{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", auth.ErrMalformed, len(token), auth.MaxTokenBytes)
	case auth.IsSignature(token):
		return k.signature(ctx, token)
	case k.anyBearer:
		return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: "any bearer"}, nil
	case k.bearer == nil:
		return auth.Grant{}, fmt.Errorf("%w: it does not begin with %q, and no issuer of bearer tokens is configured",
			auth.ErrUnsupported, "SharedAccessSignature ")
	}
	grant, err := k.bearer.Verify(ctx, token)
	if errors.Is(err, auth.ErrAudience) {
		k.report(admission.Remote(ctx), err)
	}
	if err != nil {
		return auth.Grant{}, err
	}
	for i := range grant.Scopes {
		grant.Scopes[i].Basis = auth.Basis{Hub: k.incarnation(grant.Scopes[i].Path)}
	}
	return grant, nil
}

func (k *Registry) signature(ctx context.Context, token string) (auth.Grant, error) {
	s, err := auth.ParseSignature(token)
	if err != nil {
		return auth.Grant{}, err
	}
	grant, err := k.signed(s)
	if !errors.Is(err, auth.ErrSignature) {
		return grant, err
	}
	looked, unknown := k.others.lookFor(ctx, auth.HubOf(s.Path), s.Policy)
	if unknown != nil {
		return auth.Grant{}, unknown
	}
	if looked {
		return k.signed(s)
	}
	return grant, err
}

// signed looks for the policy at the namespace and at the hub that the resource lies
// in. The keys are all tried, whichever fits.
func (k *Registry) signed(s auth.Signature) (auth.Grant, error) {
	hub := k.incarnation(s.Path) // before its policies are looked for
	levels := []level{{}}        // of the policies that reach the resource
	if at, err := k.level(auth.HubOf(s.Path)); err == nil && at.hub != "" {
		levels = append(levels, at)
	}
	live := k.live.Load()
	var scopes []auth.Scope
	for _, at := range levels {
		r, ok := live.byKey[at.key(s.Policy)]
		if !ok {
			continue
		}
		keys := k.keysOf(r)
		if i := slices.IndexFunc(keys, s.SignedBy); i >= 0 {
			k.uses.note(r.key(), i, time.Now())
			scopes = append(scopes, auth.Scope{Path: s.Path, Rights: r.Rights, Basis: r.basis(hub, digest(keys[i]))})
		}
	}
	if len(scopes) == 0 {
		return auth.Grant{}, fmt.Errorf("%w: it fits no key of a policy %.80q", auth.ErrSignature, s.Policy)
	}
	if !time.Now().Before(s.Expires) {
		return auth.Grant{}, &auth.ExpiredError{At: s.Expires}
	}
	return auth.Grant{Scopes: scopes, Expires: s.Expires, Holder: s.Policy}, nil
}

// keysOf gives the keys that are good for a policy.
func (k *Registry) keysOf(r record) []string {
	keys := []string{r.Primary, r.Secondary}
	if k.development && r.Hub == "" && r.Name == auth.RootPolicy {
		keys = append(keys, auth.DevelopmentKey)
	}
	return keys
}

// Key checks a policy's name and key, as SASL PLAIN and HTTP Basic bring them. The
// policy may be the namespace's or a hub's; of several of that name, those whose key it
// is. What it grants stands on them. Before it is refused the store may be asked, as by Token. The
// error is auth.ErrSignature, or auth.ErrUnavailable.
func (k *Registry) Key(ctx context.Context, name, key string) (auth.Grant, error) {
	grant, err := k.keyed(name, key)
	if err == nil {
		return grant, nil
	}
	looked, unknown := k.others.lookForAny(ctx, name)
	if unknown != nil {
		return auth.Grant{}, unknown
	}
	if looked {
		return k.keyed(name, key)
	}
	return grant, err
}

func (k *Registry) keyed(name, key string) (auth.Grant, error) {
	shown := digest(key)
	var scopes []auth.Scope
	live := k.live.Load()
	for _, r := range live.byName[auth.Fold(name)] {
		fits, which := 0, 0
		for i, known := range live.digests[r.key()] {
			same := subtle.ConstantTimeCompare(shown[:], known[:])
			fits |= same
			which += same * i
		}
		if fits == 1 && k.inForce(r) {
			k.uses.note(r.key(), which, time.Now())
			scopes = append(scopes, r.scope(shown))
		}
	}
	if len(scopes) == 0 {
		return auth.Grant{}, fmt.Errorf("%w: no policy %.80q has this key", auth.ErrSignature, name)
	}
	return auth.Grant{Scopes: scopes, Holder: name}.While(k.stands), nil
}

// Keys gives all keys that are good for policies of a name, the namespace's and hubs', where the server has
// to know what its client knows: SCRAM. Which policies a key is of is for Key to say. Before there are none
// the store may be asked, as by Token; the error is auth.ErrUnavailable.
func (k *Registry) Keys(ctx context.Context, name string) ([]string, error) {
	if keys := keysNamed(k, name); len(keys) > 0 {
		return keys, nil
	}
	if _, err := k.others.lookForAny(ctx, name); err != nil {
		return nil, err
	}
	return keysNamed(k, name), nil
}

func keysNamed(k *Registry, name string) (keys []string) {
	for _, r := range k.live.Load().byName[auth.Fold(name)] {
		if k.inForce(r) {
			keys = append(keys, k.keysOf(r)...)
		}
	}
	return keys
}

// Named gives the rights of a policy without any key: for client certificates, whose common name is
// a policy's of the namespace, or the name of a hub, a slash and a policy's of that hub. What it
// grants stands on the policy, whatever its keys. Before it is refused the store may be asked, as by
// Token. The error is auth.ErrSignature, or auth.ErrUnavailable.
func (k *Registry) Named(ctx context.Context, name string) (auth.Grant, error) {
	hub, policy := "", name
	if cut := strings.LastIndexByte(name, '/'); cut >= 0 {
		hub, policy = name[:cut], name[cut+1:]
	}
	r, ok := k.find(hub, policy)
	if !ok {
		if _, err := k.others.lookFor(ctx, hub, policy); err != nil {
			return auth.Grant{}, err
		}
		r, ok = k.find(hub, policy)
	}
	if !ok {
		return auth.Grant{}, fmt.Errorf("%w: there is no policy %.80q", auth.ErrSignature, name)
	}
	return auth.Grant{Scopes: []auth.Scope{r.scope(noKey)}, Holder: name}.While(k.stands), nil
}

func (k *Registry) find(hub, policy string) (r record, ok bool) {
	at, err := k.level(hub)
	if err != nil {
		return record{}, false
	}
	r, ok = k.live.Load().byKey[at.key(policy)]
	return r, ok
}
