// Package access keeps the shared-access policies of a yard and checks whatever a client
// shows to be let in: signatures, keys and bearer tokens. Every door asks it; it knows
// no protocol.
package access

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/auth"
)

// Policy is a named pair of keys with rights to the namespace or to one hub.
type Policy struct {
	// Hub is empty for a policy of the namespace.
	Hub       string
	Name      string
	Rights    auth.Rights
	Primary   string
	Secondary string
	Created   time.Time
}

// Key tells the two keys of a policy apart.
type Key string

const (
	PrimaryKey   Key = "primary"
	SecondaryKey Key = "secondary"
)

var (
	// ErrNotFound: there is no such policy, or no such hub.
	ErrNotFound = errors.New("policy not found")
	// ErrExists: the name is taken at that level.
	ErrExists = errors.New("policy exists already")
	// ErrInvalid: name or rights are not allowed.
	ErrInvalid = errors.New("policy is not allowed")
	// ErrRootPolicy: the namespace's root policy cannot be deleted or lose rights.
	ErrRootPolicy = errors.New("the root policy cannot be deleted")
)

// TokenVerifier checks bearer tokens of an issuer. It may ask the network.
type TokenVerifier interface {
	Verify(ctx context.Context, token string) (auth.Grant, error)
}
