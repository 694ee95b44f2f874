package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config is what access works with.
type Config struct {
	// Meta keeps the policies; required.
	Meta meta.Store
	// Hub tells whether a hub exists, its name in any case, and when it was created:
	// policies of a hub that was deleted must not come back with a new one of that name.
	// Required.
	Hub func(name string) (created time.Time, exists bool)
	// Development: auth.DevelopmentKey is good for the root policy, too.
	Development bool
	// AnyBearer: every bearer token has all rights. Only with Development.
	AnyBearer bool
	// Bearer checks bearer tokens; nil: none is accepted (unless AnyBearer).
	Bearer TokenVerifier
	// Log is where it tells what changed; nil means slog.Default().
	Log *slog.Logger
}

func (c Config) validate() error {
	if c.Meta == nil || c.Hub == nil {
		return errors.New("both a meta store and a view of the hubs are required")
	}
	if c.AnyBearer && !c.Development {
		return errors.New("to accept any bearer token is for development only, while every listener is on loopback")
	}
	return nil
}

// Registry keeps policies and lets in. All methods may be called by many goroutines at once.
type Registry struct {
	meta        meta.Store
	hub         func(name string) (created time.Time, exists bool)
	development bool
	anyBearer   bool
	bearer      TokenVerifier
	log         *slog.Logger
	created     bool

	// turn has one place: it is held by who changes policies, or takes news of them in,
	// from before the store is asked until the registry knows the outcome. A channel, so
	// that who waits can leave.
	turn     chan struct{}
	policies *registry
}

// Open reads the policies; on first start it makes the root policy with fresh keys. It
// starts no goroutine; Run does the rest.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open access: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	k := &Registry{
		meta:        cfg.Meta,
		hub:         cfg.Hub,
		development: cfg.Development,
		anyBearer:   cfg.AnyBearer,
		bearer:      cfg.Bearer,
		log:         cfg.Log,
		turn:        make(chan struct{}, 1),
		policies:    newRegistry(),
	}
	if err := k.load(ctx); err != nil {
		return nil, fmt.Errorf("open access: %w", err)
	}
	return k, nil
}

// Created tells whether Open made the root policy: its connection string is to be shown.
func (k *Registry) Created() bool { return k.created }

// Development tells whether the well-known key is good.
func (k *Registry) Development() bool { return k.development }

func (k *Registry) load(ctx context.Context) error {
	if err := k.ensureRoot(ctx); err != nil {
		return err
	}
	entries, err := k.meta.List(ctx, policiesPrefix)
	if err != nil {
		return fmt.Errorf("read policies: %w", err)
	}
	var all []sighting
	for _, e := range entries {
		r, err := decode(e)
		if err != nil {
			return err
		}
		all = append(all, sighting{key: e.Key, revision: e.Revision, record: r})
	}
	k.policies.apply(all...)
	return nil
}

// ensureRoot lets the store decide which of several nodes is the first.
func (k *Registry) ensureRoot(ctx context.Context) error {
	key := level{}.key(auth.RootPolicy)
	_, err := k.meta.Get(ctx, key)
	if err == nil {
		return nil
	}
	if !errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("look for the root policy: %w", err)
	}
	root := record{Policy: Policy{
		Name: auth.RootPolicy, Rights: auth.Manage, Primary: newKey(), Secondary: newKey(), Created: now(),
	}}
	_, err = k.meta.CompareAndSet(ctx, key, 0, root.encode())
	if errors.Is(err, meta.ErrConflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the root policy: %w", err)
	}
	k.created = true
	return nil
}

// now has the precision that clients are shown.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// begin waits for the turn; end gives it back.
func (k *Registry) begin(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Registry) end() { <-k.turn }
