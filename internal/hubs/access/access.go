// Package access keeps the shared-access policies of a yard and checks whatever a client shows to
// be let in: signatures, keys and bearer tokens. Every listener asks it; it knows no protocol.
//
// Policies are entries in a meta.Store. All of them are in memory too, as one immutable
// snapshot, so that to let a client in takes no lock and asks no store. Changes go to the
// store by compare-and-set first and into the snapshot afterwards; what other nodes
// change comes in through Run. What was granted stands on policies, keys and hubs as they
// were then, and ends when they do (stand.go).
package access

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
)

// MaxPolicies is the most that the namespace, or one hub, may have.
const MaxPolicies = 100

// Policy is a named pair of keys with rights to the namespace or to one hub.
type Policy struct {
	// Hub is empty for a policy of the namespace.
	Hub string
	// Name is 1 to 64 letters, digits, '-', '_' and '.', with a letter or digit at both
	// ends. Case does not distinguish policies, but is kept for show.
	Name      string
	Rights    auth.Rights
	Primary   string
	Secondary string
	Created   time.Time
	// Quota bounds what all who show its keys publish together.
	Quota quota.Limit
}

// Key is which of the two keys of a policy.
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
	// ErrInvalid: name, rights or a given key are not allowed, or there are MaxPolicies already.
	ErrInvalid = errors.New("policy is not allowed")
	// ErrRootPolicy: the namespace's root policy cannot be deleted.
	ErrRootPolicy = errors.New("the root policy cannot be deleted")
)

// TokenVerifier checks bearer tokens of an issuer. It may ask the network. Errors are
// those of auth.
type TokenVerifier interface {
	Verify(ctx context.Context, token string) (auth.Grant, error)
}
