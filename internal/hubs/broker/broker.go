// Package broker is what every listener calls: it knows hubs, their partitions and their
// consumer groups, and no protocol.
//
// Definitions of hubs are entries in a meta.Store; events are in the logs of an eventlog.Engine.
// The broker keeps all definitions in memory as one immutable snapshot, so that publishing and
// reading take no lock and ask no store. Changes go to the store by compare-and-set first and into
// the snapshot afterwards; what other nodes change comes in through Run.
//
// Who reads a partition for a group is decided by one rule (admit), and what becomes of
// the batch of a producer that wants it stored once by another (record.judge).
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Limits and defaults.
const (
	// DefaultGroup is the consumer group that every hub has.
	DefaultGroup = "$Default"
	// MaxPartitions is the most a hub may have.
	MaxPartitions = 1024
	// DefaultPartitions is for a hub that is created without a number.
	DefaultPartitions = 4
	// DefaultRetentionAge is for a hub that is created without a retention.
	DefaultRetentionAge = 7 * 24 * time.Hour
	// MaxKeyCharacters is the most a partition key may have.
	MaxKeyCharacters = 128
)

// Config is what a broker works with.
type Config struct {
	// Engine stores the events, Meta the definitions. Both are required; the broker closes neither.
	Engine eventlog.Engine
	Meta   meta.Store
	// Namespace is the name that hubs are found under by clients. Empty means "eventyard".
	Namespace string
	// Nodes are those that serve these hubs. Nil means that this is the only one.
	Nodes *cluster.Nodes
	// Quota bounds what is published to all hubs; nil: nothing does. Of the hubs' own quotas a node
	// takes an equal share.
	Quota *quota.Meter
	// Log takes what the broker did; nil means slog.Default().
	Log *slog.Logger
	// Metrics is where its counters are registered; nil means nowhere.
	Metrics prometheus.Registerer
	// Translators make single events of frames, for every reader of a hub's events; nil means that these
	// stop at a frame.
	Translators eventlog.Translators
	// Notes takes what becomes of hubs and groups; nil means nobody does.
	Notes activity.Notes
}

// Broker is one node's view of all hubs. All methods may be called by many goroutines at once.
type Broker struct {
	namespace   string
	engine      eventlog.Engine
	translators eventlog.Translators
	meta        meta.Store
	quota       *quota.Meter
	log         *slog.Logger
	metrics     *metrics
	notes       activity.Notes
	// definitions are all that this node knows, hubs what users see of them.
	definitions *mirror.Table[definition]
	hubs        *registry
	groups      groupStore
	lookups     *looks.Looks
	slots       *slots
	ledgers     *ledgers
	// unsealed are the partitions that may begin beyond their ends, written by Open only: Run looks again.
	unsealed map[eventlog.PartitionID]bool
	*Counters
	*Frames
}

// Open reads the definitions and finishes deletions that were interrupted. It starts
// no goroutine; Run does the rest.
func Open(ctx context.Context, cfg Config) (*Broker, error) {
	if cfg.Engine == nil || cfg.Meta == nil {
		return nil, errors.New("open broker: both an engine and a meta store are required")
	}
	metrics, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("open broker: %w", err)
	}
	b := &Broker{
		namespace:   cmp.Or(cfg.Namespace, "eventyard"),
		engine:      cfg.Engine,
		translators: cfg.Translators,
		meta:        cfg.Meta,
		quota:       cfg.Quota,
		log:         cmp.Or(cfg.Log, slog.Default()),
		metrics:     metrics,
		notes:       cfg.Notes,
		hubs:        &registry{engine: cfg.Engine, metrics: metrics, logs: eventlog.NewProvider(cfg.Engine)},
		groups:      groupStore{meta: cfg.Meta},
		slots:       &slots{seats: metrics.receivers, all: make(map[slotID]*slot)},
	}
	b.hubs.live.Store(&view{byName: make(map[string]*hub)})
	b.Frames = &Frames{broker: b, tails: make(chan tailLook, maxTailLooks)}
	b.Counters = &Counters{metrics, b.hubs, &keyWatch{all: make(map[*keyCount]struct{})}}
	if cfg.Nodes != nil && !cfg.Nodes.Single() {
		b.lookups = looks.New(cfg.Meta)
		b.slots.shared = newSharing(b, cfg.Nodes)
		b.hubs.nodes = cfg.Nodes.Count
		b.groups.lookups = b.lookups
	}
	b.ledgers = &ledgers{broker: b, rest: producerRest, census: newCensus(), all: make(map[eventlog.PartitionID]*ledger)}
	if nodes := cfg.Nodes; b.slots.shared != nil {
		b.ledgers.keeps = func(id eventlog.PartitionID) bool { return nodeFor(nodes.Live(), id) == nodes.Self().ID }
		b.ledgers.changed = nodes.Changed
	}
	b.definitions = mirror.New(mirror.Config[definition]{
		Store: cfg.Meta, Prefix: hubsPrefix, Name: "hubs", Decode: decodeDefinition, Encode: encode[definition], Apply: b.hubs.show, Made: cfg.noteHub, Log: b.log,
	})
	lower := func(ctx context.Context) (err error) {
		b.unsealed, err = lowerStarts(ctx, b, func(eventlog.PartitionID) bool { return true })
		return err
	}
	for _, step := range []func(context.Context) error{b.definitions.Load, b.provideAll, lower, b.resumeDeletions, b.resumeGroupDeletions} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("open broker: %w", err)
		}
	}
	return b, nil
}

// Namespace is the name that clients find the hubs under.
func (b *Broker) Namespace() string { return b.namespace }

// provideAll has the engine provide the logs of all hubs. One that it cannot now is left to Run, so
// that the others are not kept waiting for it.
func (b *Broker) provideAll(ctx context.Context) error {
	err := b.hubs.logs.ProvideAll(ctx)
	if err != nil && ctx.Err() == nil {
		b.unprovided(err)
		return nil
	}
	return err
}

func (b *Broker) unprovided(err error) {
	b.log.Warn("the storage of a hub is not ready, or does not know its retention; trying again", "error", err)
}

// provide has the engine provide the log of a hub that was made or changed.
func (b *Broker) provide(ctx context.Context, log string) error {
	if err := b.hubs.logs.Provide(ctx, log); err != nil && !errors.Is(err, eventlog.ErrRemoved) { // else it was deleted meanwhile
		return fmt.Errorf("it is stored, but its log is not ready yet: %w", err)
	}
	return nil
}

// resumeDeletions finishes what a crash interrupted. A hub that cannot be removed now
// is gone for users all the same, so the others are not kept waiting for it.
func (b *Broker) resumeDeletions(ctx context.Context) error {
	for _, there := range b.definitions.Items() {
		if !there.Value.deleting() {
			continue
		}
		if err := b.finishDeletion(ctx, there); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("finish deletion of hub %q: %w", there.Value.Name, err)
			}
			b.log.Warn("deleted hub still takes up storage, the next start tries again", "hub", there.Value.Name, "error", err)
			continue
		}
		b.log.Info("interrupted deletion of hub finished", "hub", there.Value.Name)
	}
	return nil
}

// Run follows the changes that other nodes make, until ctx ends, and returns nil
// then. Without it the broker knows only its own. It also keeps what is known of
// producers close to the end of the log, for a fast start, and has logs provided that
// the engine could not provide before. Where there are several nodes it also frees receivers' slots in
// the store, evicts those that have lost theirs elsewhere, and removes what others have left of deleted
// hubs.
func (b *Broker) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	keeping.Go(func() { b.ledgers.run(ctx) })
	if b.slots.shared != nil {
		keeping.Go(func() { b.slots.shared.run(ctx) })
	}
	keeping.Go(func() { b.hubs.logs.Run(ctx, b.unprovided) })
	keeping.Go(func() { clearLeft(ctx, b) })
	keeping.Go(func() { trimAll(ctx, b) })
	keeping.Go(func() { lowerLater(ctx, b) })
	keeping.Go(func() { b.runTails(ctx) })
	return b.definitions.Run(ctx)
}
