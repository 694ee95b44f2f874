package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// maxAnswerBytes is the most that is read of an answer of the issuer.
const maxAnswerBytes = 1 << 20

// source is where the keys are asked for.
type source struct {
	issuer string
	client *http.Client
}

func newSource(issuer string, transport http.RoundTripper) *source {
	if transport == nil {
		// Questions are rare: no connection is kept for the next one.
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	}
	return &source{issuer: issuer, client: &http.Client{Transport: limiting{transport}}}
}

// keys asks for the document that says where the keys are, and then for the keys.
func (s *source) keys(ctx context.Context) (jose.JSONWebKeySet, error) {
	provider, err := goidc.NewProvider(goidc.ClientContext(ctx, s.client), s.issuer)
	if err != nil {
		return jose.JSONWebKeySet{}, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return jose.JSONWebKeySet{}, err
	}
	if document.Keys == "" {
		return jose.JSONWebKeySet{}, errors.New("it does not say where its keys are (jwks_uri)")
	}
	set, err := s.fetch(ctx, document.Keys)
	if err != nil {
		return jose.JSONWebKeySet{}, fmt.Errorf("keys at %s: %w", document.Keys, err)
	}
	return set, nil
}

func (s *source) fetch(ctx context.Context, url string) (set jose.JSONWebKeySet, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return set, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return set, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return set, fmt.Errorf("answered with %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		return set, err
	}
	if len(set.Keys) == 0 {
		return set, errors.New("there are none")
	}
	return set, nil
}

// limiting is a transport that reads only so much of an answer.
type limiting struct{ next http.RoundTripper }

func (l limiting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = limited{io.LimitReader(response.Body, maxAnswerBytes), response.Body}
	return response, nil
}

// limited is a body of which only so much is read.
type limited struct {
	io.Reader
	io.Closer
}
