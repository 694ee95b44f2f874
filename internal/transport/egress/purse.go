package egress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	// tokenTime is what getting a token may take: less than a request may, so that it is the
	// token server that is named, and not the endpoint, where it does not answer.
	tokenTime = 15 * time.Second
	// tokenLife is how long a token is used that does not say when it expires.
	tokenLife = time.Hour
	// tokenPause is how long a failure stands for all who ask, and a token for all who are refused
	// with it: a token server is not asked once for every event.
	tokenPause = time.Second
)

// grant is what distinguishes tokens.
type grant struct {
	OAuth
	ca string
}

// purse holds the token for a grant. It is got when somebody needs it, once for all who wait.
type purse struct {
	client *Client
	server string // the token server, without what may be secret in its URL
	fetch  func(context.Context) (*oauth2.Token, error)

	mu     sync.Mutex
	token  string    // guarded by mu: as Authorization has it; empty: none
	got    time.Time // guarded by mu: when it was
	until  time.Time // guarded by mu: when a new one is wanted
	flight *flight   // guarded by mu: a call under way, or the last one if it failed
	failed time.Time // guarded by mu: when flight did
}

// flight is one call for a token. token and err are set before done is closed.
type flight struct {
	done  chan struct{}
	token string
	err   error
}

// openPurse makes one. The token server is as guarded as the endpoint.
func (c *Client) openPurse(g grant) (*purse, error) {
	rt, err := c.trusts.get(trust{ca: g.ca, system: true})
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{ClientID: g.ClientID, ClientSecret: g.Secret, TokenURL: g.TokenURL, Scopes: strings.Fields(g.Scope)}
	if g.Audience != "" {
		config.EndpointParams = url.Values{"audience": {g.Audience}}
	}
	at, err := url.Parse(g.TokenURL)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &purse{client: c, server: at.Scheme + "://" + at.Host, fetch: func(ctx context.Context) (*oauth2.Token, error) {
		return config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	}}, nil
}

// take gives the token, or gets one; fresh means that it was got just now: to get another would not
// help who is refused with it.
func (p *purse) take(ctx context.Context) (token string, fresh bool, err error) {
	p.mu.Lock()
	if p.token != "" && time.Now().Before(p.until) {
		defer p.mu.Unlock()
		return p.token, time.Since(p.got) < tokenPause, nil
	}
	f := p.flightLocked()
	p.mu.Unlock()
	select {
	case <-f.done:
		return f.token, true, f.err
	case <-ctx.Done():
		return "", false, fmt.Errorf("%w: waiting for it: %w", errToken, context.Cause(ctx))
	}
}

// flightLocked joins the call under way or the failure just seen, or begins another call.
func (p *purse) flightLocked() *flight {
	if p.flight != nil && (p.failed.IsZero() || time.Since(p.failed) < tokenPause) {
		return p.flight
	}
	f := &flight{done: make(chan struct{})}
	p.flight, p.failed = f, time.Time{}
	if !p.client.spawn(func() { p.fly(f) }) {
		f.err = fmt.Errorf("%w: %w", errToken, errClosed)
		p.failed = time.Now()
		close(f.done)
	}
	return f
}

// fly gets a token.
func (p *purse) fly(f *flight) {
	ctx, cancel := context.WithTimeout(p.client.stopping, tokenTime)
	defer cancel()
	began := time.Now()
	t, err := p.fetch(ctx)

	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(f.done)
	if err == nil {
		f.token = t.Type() + " " + t.AccessToken
		if !Sendable("Authorization", f.token) {
			err = errors.New("its token cannot stand in a header")
		}
	}
	if err != nil {
		f.token = ""
		f.err = fmt.Errorf("%w: %s: %w: check its token URL, client id and secret", errToken, p.server, plainly(err))
		p.failed = time.Now()
		return
	}
	until := began.Add(tokenLife)
	if !t.Expiry.IsZero() { // shortly before: a minute, or a tenth of a short life
		until = t.Expiry.Add(-min(time.Minute, t.Expiry.Sub(began)/10))
	}
	p.token, p.got, p.until, p.flight = f.token, time.Now(), until, nil
}

// plainly says what a token server did: the libraries' errors hold its URL, where secrets are
// kept, and all that it answered.
func plainly(err error) error {
	var answered *oauth2.RetrieveError
	var inURL *url.Error
	switch {
	case errors.As(err, &answered) && answered.Response != nil:
		said := answered.ErrorCode
		if said == "" {
			said = string(answered.Body)
		}
		return fmt.Errorf("it answers %s: %.100s", oneLine(answered.Response.Status, 40), oneLine(said, 100))
	case errors.As(err, &inURL):
		return inBrief(inURL.Err)
	}
	return inBrief(err)
}

// drop forgets a token that was refused, if nobody has got another one meanwhile.
func (p *purse) drop(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token == token {
		p.token = ""
	}
}
