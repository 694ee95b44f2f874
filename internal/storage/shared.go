package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
)

var (
	// ErrNoSecretKey: several nodes are to share storage, and no secret key was given. None is made
	// in silence: the next node would make another.
	ErrNoSecretKey = errors.New("no secret key was given")
	// ErrOtherSecretKey: the other nodes have a secret key that this one was not given.
	ErrOtherSecretKey = sealed.ErrOtherKey
	// ErrNewSecretKey: this node would seal with a key that the other nodes were not given.
	ErrNewSecretKey = sealed.ErrUnknownToOthers
)

// Bodies keeps the larger bodies of blobs; package blob says what is asked of it.
type Bodies interface {
	Put(ctx context.Context, name string, body io.Reader) (bytes int64, err error)
	Open(ctx context.Context, name string, offset, bytes int64) (body io.ReadCloser, stored int64, err error)
	Remove(ctx context.Context, name string) error
	List(ctx context.Context) (names []string, err error)
}

// Parts are what storage of several nodes is made of.
type Parts struct {
	Log eventlog.Engine
	// Meta is the store without seals, and has been loaded.
	Meta   meta.Store
	Bodies Bodies
	// Wire carries what nodes ask each other; nil: they ask nothing.
	Wire cluster.Wire
	// Writable stores something that means nothing, wherever entries are kept, and says why that, or
	// appending to logs, fails; nil: nothing can fail for lack of servers. It blocks until ctx ends at
	// most, and costs a small message for each stream of entries.
	Writable func(context.Context) error
	// Servers finds out how the servers are that keep it; nil: there is nothing to find out.
	Servers func(context.Context) Servers
	// Ready says why the servers cannot store; nil: that is never known.
	Ready func() error
	// Watch and Tidy are those of Storage; nil: there is nothing to watch, or to tidy.
	Watch, Tidy func(context.Context) error
	// Scrub and SetReplicas are those of Storage; nil: there are no servers.
	Scrub       func(context.Context, Scrubbing) (Scrubbed, error)
	SetReplicas func(context.Context, Replication) (ReplicationProgress, error)
	// Engine is what clients are told of it.
	Engine string
	// Replicas is how many servers keep each event.
	Replicas int
	// DiskFolder is that of Storage; empty: the data is on other machines.
	DiskFolder string
	// Local: nobody beyond this machine can reach it.
	Local bool
	// Close frees all of them; nil means that there is nothing to free.
	Close func() error
}

// Share makes storage of parts that other nodes use as well. Secrets are sealed with the secret key
// that all nodes are given. Errors: ErrNoSecretKey, ErrOtherSecretKey, ErrNewSecretKey, the meta
// store's; the parts are the caller's to close then.
func Share(ctx context.Context, parts Parts, cfg Config) (*Storage, error) {
	keys, err := cfg.SecretKey.given(ctx)
	if err != nil {
		return nil, err
	}
	store := sealed.New(parts.Meta, keys)
	// What another node has stored a moment ago counts, and is sealed anew as well, or an older key
	// would be needed for good.
	if err := store.Fresh(ctx, ""); err != nil {
		return nil, err
	}
	if err := store.Agree(ctx); err != nil {
		return nil, err
	}
	if err := checkFilled(ctx, store); err != nil {
		return nil, err
	}
	entries, due, err := store.Reseal(ctx)
	if err == nil && due { // there is no file to rewrite, and another node may have noted that already
		if err = store.Compacted(ctx); mirror.GoneOrChanged(err) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	if entries > 0 {
		cmp.Or(cfg.Log, slog.Default()).Info("secrets were sealed with the newest secret key; older keys are needed until every node has it", "entries", entries)
	}
	if parts.Ready == nil {
		parts.Ready = func() error { return nil }
	}
	end := parts.Close
	if end == nil {
		end = func() error { return nil }
	}
	return &Storage{
		Log: parts.Log, Meta: store, Bodies: parts.Bodies, Wire: parts.Wire, Writable: parts.Writable, Servers: parts.Servers, Ready: parts.Ready, Watch: parts.Watch, Tidy: parts.Tidy,
		Scrub: parts.Scrub, SetReplicas: parts.SetReplicas, Keys: keys, Engine: parts.Engine, Replicas: parts.Replicas, DiskFolder: parts.DiskFolder, Local: parts.Local, close: end,
	}, nil
}

// given gives keys that come from elsewhere than a folder of this machine.
func (k SecretKey) given(ctx context.Context) (*sealed.Keys, error) {
	if k == (SecretKey{}) {
		return nil, fmt.Errorf("%w: every node of a yard on NATS is given the same one, by --secrets-key-file, --secrets-key-command or EVENTYARD_SECRETS_KEY; make it with: openssl rand -base64 32", ErrNoSecretKey)
	}
	if err := k.Check(); err != nil {
		return nil, err
	}
	return k.read(ctx, "")
}
