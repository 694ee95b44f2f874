package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// The kinds of tokens, as $cbs knows them.
const (
	kindSignature = "servicebus.windows.net:sastoken"
	kindBearer    = "jwt"
)

// signatureLife is how long the signatures that we make are good for.
const signatureLife = time.Hour

// unknownLife is taken for the life of a token that does not say.
const unknownLife = 20 * time.Minute

// token is what lets us in.
type token struct {
	kind, text string
	// expires is zero where it is not known.
	expires time.Time
	// renew is when another should be got; zero: there will be no other.
	renew time.Time
}

// tokens makes tokens. It may be called by many goroutines at once.
type tokens interface {
	// get gives a token for an audience.
	get(ctx context.Context, audience string) (token, error)
}

func newTokens(c auth.ConnectionString, bearer func(context.Context) (string, time.Time, error)) (tokens, error) {
	switch {
	case bearer != nil:
		return &bearerTokens{ask: bearer, turn: make(chan struct{}, 1)}, nil
	case c.Key != "":
		return keyTokens{policy: c.Policy, key: c.Key, life: signatureLife}, nil
	}
	signed, err := auth.ParseSignature(c.Signature)
	if err != nil {
		return nil, err
	}
	return readyToken{kind: kindSignature, text: c.Signature, expires: signed.Expires}, nil
}

// renewal is when a token that is good from now on is to be replaced: with a quarter of its
// life left to try in.
func renewal(now, expires time.Time) time.Time { return now.Add(expires.Sub(now) / 4 * 3) }

// keyTokens signs with a policy's key, for each audience its own.
type keyTokens struct {
	policy, key string
	life        time.Duration
}

func (t keyTokens) get(_ context.Context, audience string) (token, error) {
	now := time.Now()
	expires := now.Add(t.life)
	return token{
		kind: kindSignature, text: auth.Sign(audience, t.policy, t.key, expires),
		expires: expires, renew: renewal(now, expires),
	}, nil
}

// readyToken is a signature that somebody made for us. There is no other when it has expired.
type readyToken token

func (t readyToken) get(context.Context, string) (token, error) { return token(t), nil }

// bearerTokens asks the program for tokens, and uses each for all audiences until it is
// time for another.
type bearerTokens struct {
	ask func(context.Context) (string, time.Time, error)

	// turn is held while the program is called.
	turn chan struct{}
	last token // guarded by turn
}

func (t *bearerTokens) get(ctx context.Context, _ string) (token, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return token{}, context.Cause(ctx)
	}
	if t.last.text != "" && time.Now().Before(t.last.renew) {
		return t.last, nil
	}
	text, expires, err := t.ask(ctx)
	now := time.Now()
	switch {
	case err != nil:
		return token{}, fmt.Errorf("get a token: %w", err)
	case text == "":
		return token{}, errors.New("get a token: it is empty")
	}
	t.last = token{kind: kindBearer, text: text, expires: expires}
	if expires.IsZero() {
		expires = now.Add(unknownLife)
	}
	t.last.renew = renewal(now, expires)
	return t.last, nil
}
