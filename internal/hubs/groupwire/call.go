package groupwire

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Call is a request to $yard for a hub.
type Call struct {
	Operation string
	// Group is the one that the body names.
	Group string
	Body  []byte
	// Secret is what the instance made to show that it is the same later on; Lasts is for how long
	// what it writes counts as alive. Both go beside the body, in application properties, since
	// yards older than secrets read bodies strictly.
	Secret string
	Lasts  time.Duration
}

// The application properties of a request.
const (
	PropertyOperation = "operation"
	PropertyHub       = "name"
	PropertySecret    = "instance-secret"
	PropertyLasts     = "lasts-ms" // in decimal
)

// MinSecretBytes and MaxSecretBytes bound a secret: a short one could be guessed.
const (
	MinSecretBytes = 16
	MaxSecretBytes = 256
)

// Properties are the call's, for the hub named.
func (c Call) Properties(hub string) map[string]any {
	p := map[string]any{PropertyOperation: c.Operation, PropertyHub: hub}
	if c.Secret != "" {
		p[PropertySecret] = c.Secret
	}
	if c.Lasts > 0 {
		p[PropertyLasts] = strconv.FormatInt(c.Lasts.Milliseconds(), 10)
	}
	return p
}

// ReadSecret reads the two properties of which an instance is known. Error: ErrMalformed.
func ReadSecret(secret, lasts string) (string, time.Duration, error) {
	if n := len(secret); n > 0 && (n < MinSecretBytes || n > MaxSecretBytes || !utf8.ValidString(secret)) {
		return "", 0, fmt.Errorf("%w: a secret is text of %d to %d bytes", ErrMalformed, MinSecretBytes, MaxSecretBytes)
	}
	if lasts == "" {
		return secret, 0, nil
	}
	ms, err := strconv.ParseUint(lasts, 10, 40)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %s is a number of milliseconds", ErrMalformed, PropertyLasts)
	}
	return secret, time.Duration(ms) * time.Millisecond, nil
}

// CallHub sends a request to the node $yard of a *hub.Hub and gives the body of the reply; package
// hub says what its errors mean. Package hub sets it when it is initialised: a processor needs it,
// and a program that uses the library does not, so it is no method of hub.Hub.
var CallHub func(ctx context.Context, hub any, c Call) ([]byte, error)
