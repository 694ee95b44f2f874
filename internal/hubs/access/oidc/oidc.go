// Package oidc checks the bearer tokens of an OpenID Connect issuer and reads the rights
// that they carry. The issuer is asked for its keys when the first token comes, again
// when a token is signed by a key not seen before, and when the keys are old: an issuer
// that is down or slow stops nobody whose token was signed by a known key.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Config says whose tokens are good.
type Config struct {
	// Issuer is its URL, as it stands in the claim iss; required. The document under
	// /.well-known/openid-configuration says where its keys are.
	Issuer string
	// Audience is what the claim aud has to hold; required: an issuer makes tokens for others, too.
	Audience string
	// Log takes that the issuer does not answer; nil means slog.Default().
	Log *slog.Logger
	// Transport reaches the issuer; nil means as other programs do, proxies included.
	Transport http.RoundTripper
}

// How the issuer is asked.
const (
	askTimeout = 10 * time.Second
	// askPause is how long it is left in peace after each answer, or after it gave none.
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
	keys     *ring
}

// New makes a verifier; it asks nobody.
func New(cfg Config) (*Verifier, error) {
	address, err := url.Parse(cfg.Issuer)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" {
		return nil, fmt.Errorf("issuer of bearer tokens is %q, which is no URL of http or https", cfg.Issuer)
	}
	if cfg.Audience == "" {
		return nil, errors.New("bearer tokens need an audience: without one, tokens that were made for others would be good here")
	}
	return &Verifier{
		issuer:   cfg.Issuer,
		audience: cfg.Audience,
		keys:     &ring{ask: newSource(cfg.Issuer, cfg.Transport).keys, pause: askPause, maxAge: maxAge, log: cmp.Or(cfg.Log, slog.Default()).With("issuer", cfg.Issuer)},
	}, nil
}

// Close ends a look at the issuer that is under way, and waits for that. Safe twice.
func (v *Verifier) Close() { v.keys.close() }

// Verify checks a token and gives what its claims allow. Errors are those of auth.
func (v *Verifier) Verify(ctx context.Context, token string) (auth.Grant, error) {
	verified, err := v.verify(ctx, token)
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

// verify checks issuer, time and signature, and says in the words of auth what is wrong.
func (v *Verifier) verify(ctx context.Context, token string) (*goidc.IDToken, error) {
	parsed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", auth.ErrMalformed, err)
	}
	cfg := goidc.Config{SkipClientIDCheck: true}
	for _, a := range algorithms {
		cfg.SupportedSigningAlgs = append(cfg.SupportedSigningAlgs, string(a))
	}
	signed := &signature{keys: v.keys, token: parsed}
	verified, err := goidc.NewVerifier(v.issuer, signed, &cfg).Verify(ctx, token)
	var expired *goidc.TokenExpiredError
	switch {
	case err == nil:
		return verified, nil
	case errors.As(err, &expired) && expired.Expiry.IsZero():
		return nil, fmt.Errorf("%w: it has no end (exp)", auth.ErrMalformed)
	case errors.As(err, &expired):
		return nil, &auth.ExpiredError{At: expired.Expiry}
	case signed.unchecked != nil:
		return nil, fmt.Errorf("%w: ask issuer %s: %w", auth.ErrUnavailable, v.issuer, signed.unchecked)
	}
	return nil, fmt.Errorf("%w: %w", auth.ErrSignature, err)
}

// signature checks that of one token.
type signature struct {
	keys  *ring
	token *jose.JSONWebSignature
	// unchecked is why the keys could not be had; of an error of VerifySignature only the
	// text would be passed on.
	unchecked error
}

var errNoKey = errors.New("no key of the issuer has made the signature")

// VerifySignature is what a goidc.Verifier asks for.
func (s *signature) VerifySignature(ctx context.Context, _ string) ([]byte, error) {
	known, err := s.keys.present(ctx)
	if err != nil {
		s.unchecked = err
		return nil, err
	}
	if payload, ok := known.verify(s.token); ok {
		return payload, nil
	}
	fresh, err := s.keys.newer(ctx, known)
	if err != nil {
		s.unchecked = err
		return nil, err
	}
	if payload, ok := fresh.verify(s.token); ok {
		return payload, nil
	}
	return nil, errNoKey
}
