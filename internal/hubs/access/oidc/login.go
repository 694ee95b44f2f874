package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// LoginConfig says how people sign in by the issuer.
type LoginConfig struct {
	// Issuer is its URL, and ClientID what it knows the yard as. Required.
	Issuer, ClientID string
	// Scope is what is asked for besides openid, with blanks between.
	Scope string
	// Transport reaches the issuer; nil means as other programs do, proxies included.
	Transport http.RoundTripper
}

// Login signs people in by the issuer: by a code that their browser brings, with PKCE, so that a code
// that somebody else has seen is good for nothing. It needs no secret. All methods may be called by many
// goroutines at once.
type Login struct {
	cfg    LoginConfig
	client *http.Client

	mu       sync.Mutex
	provider *goidc.Provider // nil before it was asked; guarded by mu
}

// flow is what a browser keeps while somebody is at the issuer. None of the texts has a dot.
type flow struct{ state, nonce, verifier string }

func (f flow) String() string { return f.state + "." + f.nonce + "." + f.verifier }

func parseFlow(kept string) (flow, bool) {
	parts := strings.Split(kept, ".")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return flow{}, false
	}
	return flow{parts[0], parts[1], parts[2]}, true
}

// ErrFlow: what a browser brings back does not belong to what it was sent away with.
var ErrFlow = errors.New("it is not what this browser was sent away with")

// NewLogin makes one; it asks nobody.
func NewLogin(cfg LoginConfig) *Login {
	return &Login{cfg: cfg, client: newSource(cfg.Issuer, cfg.Transport).client}
}

// Name is what people know the issuer by.
func (l *Login) Name() string {
	if u, err := url.Parse(l.cfg.Issuer); err == nil {
		return u.Host
	}
	return l.cfg.Issuer
}

// Begin gives the address at the issuer where somebody signs in, and what their browser is to keep until
// it comes back.
func (l *Login) Begin(ctx context.Context, back string) (address, keep string, err error) {
	config, _, err := l.config(ctx, back)
	if err != nil {
		return "", "", err
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier()}
	return config.AuthCodeURL(f.state, oauth2.S256ChallengeOption(f.verifier), goidc.Nonce(f.nonce)), f.String(), nil
}

// Finish takes the code that a browser brings, and gives the tokens of who signed in: that for the yard
// first, and then that which says who it is, which is checked.
func (l *Login) Finish(ctx context.Context, back, kept, state, code string) (tokens []string, err error) {
	f, ok := parseFlow(kept)
	if !ok || subtle.ConstantTimeCompare([]byte(f.state), []byte(state)) != 1 {
		return nil, ErrFlow
	}
	config, provider, err := l.config(ctx, back)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(goidc.ClientContext(ctx, l.client), askTimeout)
	defer cancel()
	got, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if err != nil {
		return nil, fmt.Errorf("give issuer %s the code: %w", l.cfg.Issuer, err)
	}
	raw, _ := got.Extra("id_token").(string)
	id, err := provider.Verifier(&goidc.Config{ClientID: l.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("check who issuer %s says it is: %w", l.cfg.Issuer, err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.nonce)) != 1 {
		return nil, ErrFlow
	}
	return []string{got.AccessToken, raw}, nil
}

// config asks the issuer where to go, once.
func (l *Login) config(ctx context.Context, back string) (*oauth2.Config, *goidc.Provider, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.provider == nil {
		ctx, cancel := context.WithTimeout(goidc.ClientContext(context.WithoutCancel(ctx), l.client), askTimeout)
		defer cancel()
		provider, err := goidc.NewProvider(ctx, l.cfg.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("ask issuer %s: %w", l.cfg.Issuer, err)
		}
		l.provider = provider
	}
	return &oauth2.Config{
		ClientID: l.cfg.ClientID, Endpoint: l.provider.Endpoint(), RedirectURL: back, Scopes: append([]string{goidc.ScopeOpenID}, strings.Fields(l.cfg.Scope)...),
	}, l.provider, nil
}
