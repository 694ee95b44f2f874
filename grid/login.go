package grid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// login puts into a request what lets us in.
type login struct {
	// header and value are those of a key or a signature; header is empty where there is none.
	header, value string
	bearer        *bearer // nil: no token
}

// newLogin checks what was given. Topics and namespaces take the same things in different headers.
func newLogin(key, signature string, token func(context.Context) (string, time.Time, error), namespaced bool) (login, error) {
	given := 0
	for _, is := range []bool{key != "", signature != "", token != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return login{}, errors.New("more than one of Key, Signature and Token: give one of them")
	}
	if strings.ContainsFunc(key+signature, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return login{}, errors.New("the key or signature has a line break or another control character: give it as it was made")
	}
	switch {
	case token != nil:
		return login{bearer: newBearer(token)}, nil
	case key != "" && namespaced:
		return login{header: "Authorization", value: "SharedAccessKey " + key}, nil
	case signature != "" && namespaced:
		return login{header: "Authorization", value: "SharedAccessSignature " + signature}, nil
	case key != "":
		return login{header: "aeg-sas-key", value: key}, nil
	case signature != "":
		return login{header: "aeg-sas-token", value: signature}, nil
	}
	return login{}, nil
}

func (l login) apply(ctx context.Context, h http.Header) error {
	if l.header != "" {
		h.Set(l.header, l.value)
	}
	if l.bearer == nil {
		return nil
	}
	token, err := l.bearer.token(ctx)
	if err != nil {
		return err
	}
	h.Set("Authorization", "Bearer "+token)
	return nil
}

// unknownLife is how long a token is kept of which nobody says how long it lasts.
const unknownLife = 15 * time.Minute

// bearer keeps a token until three quarters of its life are over.
type bearer struct {
	ask func(context.Context) (string, time.Time, error)
	// turn has room for one: whoever has put something in may touch the rest. It is no mutex, so
	// that waiting for somebody's slow call ends with the context.
	turn chan struct{}

	kept  string    // guarded by turn
	until time.Time // guarded by turn
}

func newBearer(ask func(context.Context) (string, time.Time, error)) *bearer {
	return &bearer{ask: ask, turn: make(chan struct{}, 1)}
}

func (b *bearer) token(ctx context.Context) (string, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	now := time.Now()
	if b.kept != "" && now.Before(b.until) {
		return b.kept, nil
	}
	token, expires, err := b.ask(ctx)
	if err != nil {
		return "", fmt.Errorf("get a token: %w", err)
	}
	if token == "" {
		return "", errors.New("get a token: Config.Token gave an empty one")
	}
	b.kept, b.until = token, now.Add(unknownLife)
	if !expires.IsZero() {
		b.until = now.Add(expires.Sub(now) / 4 * 3)
	}
	return token, nil
}

// forget is for an answer of 401: a token that was kept may be none any more.
func (b *bearer) forget(ctx context.Context) {
	select {
	case b.turn <- struct{}{}:
		b.kept = ""
		<-b.turn
	case <-ctx.Done():
	}
}
