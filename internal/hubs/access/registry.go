package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Config is what access works with.
type Config struct {
	// Meta keeps the policies; required.
	Meta meta.Store
	// Hub reports whether a hub exists, its name in any case, and when it was created: policies of
	// a hub that was deleted must not come back with a new one of that name. Required.
	Hub func(name string) (created time.Time, exists bool)
	// Looks makes fresh looks at what other nodes may have changed a moment ago; nil: there are none.
	// FindHub looks likewise for a hub that Hub does not know, and fails where it cannot know; nil: nobody does.
	Looks   *looks.Looks
	FindHub func(ctx context.Context, name string) error
	// Development: auth.DevelopmentKey is good for the root policy, too.
	Development bool
	// AnyBearer: every bearer token has all rights. Only with Development.
	AnyBearer bool
	// Bearer checks bearer tokens; nil: none is accepted (unless AnyBearer). Issuer: it takes those of an
	// issuer, so that callers of other nodes may have shown one.
	Bearer TokenVerifier
	Issuer bool
	// FailurePace is what an address has of failures before their answers wait; zero: a default.
	FailurePace quota.Rate
	// Nodes says how many nodes share the quotas; nil: there is one.
	Nodes func() int
	// Log reports what changed and who was refused; nil means slog.Default().
	Log *slog.Logger
	// Notes takes what becomes of policies and of the blob account; nil means nobody does.
	Notes activity.Notes
}

// Registry keeps policies and lets in. All methods may be called by many goroutines at once.
type Registry struct {
	hub         func(name string) (created time.Time, exists bool)
	development bool
	anyBearer   bool
	bearer      TokenVerifier
	issuer      bool // bearer tokens that stand on no policy are good
	nodes       func() int
	log         *slog.Logger
	created     bool
	*failures
	*accountRegistry
	others *reviewer

	policies  *mirror.Table[record]
	live      atomic.Pointer[snapshot]
	listeners mirror.Listeners // are called after live was replaced
	uses      uses
}

// Open reads the policies; on first start it makes the root policy and the blob account with fresh
// keys. It starts no goroutine; Run does the rest.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	switch {
	case cfg.Meta == nil || cfg.Hub == nil:
		return nil, errors.New("open access: both a meta store and a view of the hubs are required")
	case cfg.AnyBearer && !cfg.Development:
		return nil, errors.New("open access: to accept any bearer token is for development only, while every listener is on loopback")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	k := &Registry{
		hub:         cfg.Hub,
		development: cfg.Development,
		anyBearer:   cfg.AnyBearer,
		bearer:      cfg.Bearer,
		issuer:      cfg.Issuer || cfg.AnyBearer,
		nodes:       cfg.Nodes,
		log:         cfg.Log,
		failures:    newFailures(cfg.Log, cmp.Or(cfg.FailurePace, failurePace)),
	}
	k.policies = mirror.New(mirror.Config[record]{
		Store: cfg.Meta, Prefix: policiesPrefix, Name: "policies", Decode: decode, Encode: record.encode, Apply: k.show, Made: cfg.notePolicy, Log: cfg.Log,
	})
	k.accountRegistry = newAccounts(cfg)
	k.others = &reviewer{
		looks: cfg.Looks, findHub: cfg.FindHub, level: k.level, live: k.live.Load,
		policies: k.policies, accounts: k.accounts, refused: k.failures, log: cfg.Log,
	}
	if err := k.load(ctx); err != nil {
		return nil, fmt.Errorf("open access: %w", err)
	}
	return k, nil
}

// Created reports whether Open made the root policy: its connection string is to be shown.
func (k *Registry) Created() bool { return k.created }

// Development reports whether the well-known key is good.
func (k *Registry) Development() bool { return k.development }

// load reads the policies. Of several nodes that find no root policy the store decides which is the
// first.
func (k *Registry) load(ctx context.Context) error {
	if err := k.policies.Load(ctx); err != nil {
		return err
	}
	key := level{}.key(auth.RootPolicy)
	_, exists := k.policies.Get(key)
	if err := k.loadAccount(ctx, !exists); err != nil || exists {
		return err
	}
	root := record{Policy: Policy{
		Name: auth.RootPolicy, Rights: auth.Manage, Primary: newKey(), Secondary: newKey(), Created: now(),
	}}
	_, err := k.policies.Put(ctx, mirror.Item[record]{Key: key, Value: root})
	if errors.Is(err, meta.ErrConflict) {
		return k.policies.Load(ctx)
	}
	if err != nil {
		return fmt.Errorf("make the root policy: %w", err)
	}
	k.created = true
	return nil
}

// Reload reads the policies and the blob account once more, for what other nodes have changed since
// while Run does not follow them yet. What this process has seen conflict with its own changes is
// among it.
func (k *Registry) Reload(ctx context.Context) error {
	return errors.Join(k.accounts.Load(ctx), k.policies.Load(ctx))
}

// Run follows the changes that other nodes make, until ctx ends, and returns nil then.
// Without it the registry knows only its own.
func (k *Registry) Run(ctx context.Context) error {
	k.sweep(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var accounts error
	var others sync.WaitGroup
	others.Go(func() {
		defer cancel()
		accounts = k.accounts.Run(ctx)
	})
	others.Go(func() { k.others.keepReviewing(ctx) })
	policies := k.policies.Run(ctx)
	cancel()
	others.Wait()
	return errors.Join(policies, accounts)
}

// now has the precision that clients are shown.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
