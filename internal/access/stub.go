package access

import (
	"context"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/auth"
	"github.com/eventyard/eventyard/internal/meta"
)

// Config is what access works with.
type Config struct {
	// Meta keeps the policies; required.
	Meta meta.Store
	// Hub tells whether a hub exists and when it was created: policies of a hub that was
	// deleted must not come back with a new one of that name. Required.
	Hub func(name string) (created time.Time, exists bool)
	// Development: auth.DevelopmentKey is good for the root policy, too.
	Development bool
	// AnyBearer: every bearer token has all rights. Only with Development.
	AnyBearer bool
	// Bearer checks bearer tokens; nil: none is accepted (unless AnyBearer).
	Bearer TokenVerifier
	Log    *slog.Logger
}

// Keeper keeps policies and lets in. All methods may be called by many goroutines at once.
type Keeper struct{}

// Open reads the policies; on first start it makes the root policy with fresh keys.
func Open(ctx context.Context, cfg Config) (*Keeper, error) { panic("stub") }

// Run follows changes that other nodes make, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error { panic("stub") }

// Created tells whether Open made the root policy: its connection string is to be shown.
func (k *Keeper) Created() bool { panic("stub") }

// Development tells whether the well-known key is good.
func (k *Keeper) Development() bool { panic("stub") }

// Policies lists those of a hub, or of the namespace for "", by name.
func (k *Keeper) Policies(hub string) ([]Policy, error) { panic("stub") }

// Policy gives one; ErrNotFound.
func (k *Keeper) Policy(hub, name string) (Policy, error) { panic("stub") }

// Create makes a policy with fresh keys, or those given in p. Errors: ErrExists,
// ErrInvalid, ErrNotFound (the hub), the store's.
func (k *Keeper) Create(ctx context.Context, p Policy) (Policy, error) { panic("stub") }

// Regenerate makes one of the keys anew; tokens signed with the old one end there and
// then; links that are open live on until their token expires.
func (k *Keeper) Regenerate(ctx context.Context, hub, name string, key Key) (Policy, error) {
	panic("stub")
}

// Delete removes a policy.
func (k *Keeper) Delete(ctx context.Context, hub, name string) error { panic("stub") }

// Token checks a shared-access signature or a bearer token for an audience, a URI such
// as sb://host/hub or the path alone; empty asks for no audience in particular. The
// grant's path is what the token was made for. Errors are those of auth.
func (k *Keeper) Token(ctx context.Context, token, audience string) (auth.Grant, error) {
	panic("stub")
}

// Key checks a policy's name and key, as SASL PLAIN and HTTP Basic bring them. The
// policy may be the namespace's or a hub's.
func (k *Keeper) Key(name, key string) (auth.Grant, error) { panic("stub") }

// Named gives the rights of a policy without any key: for client certificates, whose
// common name is a policy's.
func (k *Keeper) Named(name string) (auth.Grant, error) { panic("stub") }
