// Package oidc checks the bearer tokens of an OpenID Connect issuer and reads the rights
// that they carry. The issuer is asked for its keys when the first token comes, and again
// when a token is signed by a key not seen before: an issuer that is down stops nobody
// else from being let in.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/eventyard/eventyard/internal/auth"
)

// Config says whose tokens are good.
type Config struct {
	// Issuer is its URL, as it stands in the claim iss; required. The document under
	// /.well-known/openid-configuration tells where its keys are.
	Issuer string
	// Audience is what the claim aud has to hold; required: an issuer makes tokens for
	// others, too.
	Audience string
	// Transport reaches the issuer; nil means as other programs do, proxies included.
	Transport http.RoundTripper
}

// How the issuer is asked.
const (
	askTimeout = 10 * time.Second
	// askPause is how long it is left in peace after each question, so that strangers
	// with made-up tokens cannot have it asked without end.
	askPause = 5 * time.Second
	// maxAge is how long keys are good without a new look at the issuer, which may have
	// taken one back.
	maxAge = time.Hour
)

// algorithms are those with a key pair. Those with a shared secret must not be among
// them: the issuer's public key would be taken for the secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Verifier checks tokens. All methods may be called by many goroutines at once.
type Verifier struct {
	issuer   string
	audience string
	client   *http.Client
	maxAge   time.Duration
	// found is the issuer as it was when it was last found; nil before.
	found atomic.Pointer[found]
	// turn has one place, for who looks for the issuer.
	turn chan struct{}
	// failed is why it was not found; written and read with the turn.
	failed error
}

// found is an issuer that has answered.
type found struct {
	keys goidc.KeySet
	at   time.Time
}

// New makes a verifier; it asks nobody.
func New(cfg Config) (*Verifier, error) { return newVerifier(cfg, askPause, maxAge) }

func newVerifier(cfg Config, pause, maxAge time.Duration) (*Verifier, error) {
	issuer, err := url.Parse(cfg.Issuer)
	if err != nil || issuer.Scheme != "https" && issuer.Scheme != "http" || issuer.Host == "" {
		return nil, fmt.Errorf("issuer of bearer tokens is %q, which is no URL of http or https", cfg.Issuer)
	}
	if cfg.Audience == "" {
		return nil, errors.New("bearer tokens need an audience: without one, tokens that were made for others would be good here")
	}
	return &Verifier{
		issuer:   cfg.Issuer,
		audience: cfg.Audience,
		client:   &http.Client{Timeout: askTimeout, Transport: newSparing(cfg.Transport, pause)},
		maxAge:   maxAge,
		turn:     make(chan struct{}, 1),
	}, nil
}

// Verify checks a token and gives what its claims allow. Errors are those of auth.
func (v *Verifier) Verify(ctx context.Context, token string) (auth.Grant, error) {
	if _, err := jose.ParseSignedCompact(token, algorithms); err != nil {
		return auth.Grant{}, fmt.Errorf("%w: %w", auth.ErrMalformed, err)
	}
	keys, err := v.find(ctx)
	if err != nil {
		return auth.Grant{}, fmt.Errorf("%w: ask issuer %s: %w", auth.ErrUnavailable, v.issuer, err)
	}
	verified, err := v.verify(ctx, keys, token)
	if err != nil {
		return auth.Grant{}, err
	}
	if !slices.Contains(verified.Audience, v.audience) {
		return auth.Grant{}, fmt.Errorf("%w: it is for %.200q, not for %q", auth.ErrAudience, verified.Audience, v.audience)
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return auth.Grant{}, fmt.Errorf("%w: claims: %w", auth.ErrMalformed, err)
	}
	return auth.Grant{Scopes: c.scopes(), Expires: verified.Expiry, Holder: verified.Subject}, nil
}

// find gives the issuer's keys. Who comes first looks for them, for all, and to the end
// even if the client has left: the others would have to begin anew.
func (v *Verifier) find(ctx context.Context) (goidc.KeySet, error) {
	if known := v.found.Load(); v.recent(known) {
		return known.keys, nil
	}
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.turn }()
	known := v.found.Load()
	if v.recent(known) {
		return known.keys, nil
	}
	keys, err := v.discover(goidc.ClientContext(context.WithoutCancel(ctx), v.client))
	switch {
	case err == nil:
		v.found.Store(&found{keys, time.Now()})
		return keys, nil
	case known != nil: // keys of an issuer that is down are still its keys
		return known.keys, nil
	case !tooSoon(err) || v.failed == nil:
		v.failed = err
	}
	return nil, v.failed
}

func (v *Verifier) recent(f *found) bool { return f != nil && time.Since(f.at) < v.maxAge }

func (v *Verifier) discover(ctx context.Context) (goidc.KeySet, error) {
	provider, err := goidc.NewProvider(ctx, v.issuer)
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, err
	}
	if document.Keys == "" {
		return nil, errors.New("it does not say where its keys are (jwks_uri)")
	}
	return goidc.NewRemoteKeySet(ctx, document.Keys), nil
}

// verify checks signature, issuer and time, and says in the words of auth what is wrong.
func (v *Verifier) verify(ctx context.Context, keys goidc.KeySet, token string) (*goidc.IDToken, error) {
	recorded := &recorder{KeySet: keys}
	cfg := goidc.Config{SkipClientIDCheck: true}
	for _, a := range algorithms {
		cfg.SupportedSigningAlgs = append(cfg.SupportedSigningAlgs, string(a))
	}
	verified, err := goidc.NewVerifier(v.issuer, recorded, &cfg).Verify(ctx, token)
	var expired *goidc.TokenExpiredError
	switch {
	case err == nil:
		return verified, nil
	case errors.As(err, &expired) && expired.Expiry.IsZero():
		return nil, fmt.Errorf("%w: it has no end (exp)", auth.ErrMalformed)
	case errors.As(err, &expired):
		return nil, &auth.ExpiredError{At: expired.Expiry}
	case recorded.unanswered():
		return nil, fmt.Errorf("%w: %w", auth.ErrUnavailable, recorded.err)
	}
	return nil, fmt.Errorf("%w: %w", auth.ErrSignature, err)
}

// recorder keeps the error of a key set, of which a verifier passes on the text only.
type recorder struct {
	goidc.KeySet
	err error
}

func (r *recorder) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := r.KeySet.VerifySignature(ctx, token)
	r.err = err
	return payload, err
}

// unanswered tells whether the keys could not be had: the only error of a key set that
// has another one in it. Keys that are fresh and do not fit are an answer.
func (r *recorder) unanswered() bool {
	return errors.Unwrap(r.err) != nil && !errors.Is(r.err, errFresh)
}
