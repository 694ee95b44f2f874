// Package groups keeps what the yard knows of consumer groups: who owns which partition, how
// far each has come, and the small entries that the instances of a processor tell each other.
// It is the yard's own processor.Store, for every listener alike, and makes of it the table that
// operators see.
//
// # Records
//
// All records are entries of the meta store, under a prefix that the broker gives to one
// incarnation of a group of one incarnation of a hub. It deletes them with either, and
// a new hub or group of the same name begins with none. docs/internals/format/groups.md
// shows them.
//
// # The fence
//
// A checkpoint must not be moved by who lost the partition. Lease and checkpoint are two
// entries, and the store changes one at a time, so looking at the lease and then writing the
// checkpoint proves nothing: the lease may be lost in between. Instead the checkpoint has a
// fence of its own, the highest epoch that has begun. Begin writes it, creating the
// checkpoint's record if there is none, and every write of a checkpoint is a compare-and-set on
// a revision whose fence is known not to be higher than the writer's epoch.
//
// Why this suffices, also on a replicated store with stale reads: what a revision holds never
// changes, so what was true of its fence once stays true; a version that we give out is the
// revision together with its fence, and nothing has to be read to check it. Once Begin under
// epoch n has been acknowledged, the checkpoint's newest revision has a fence of at
// least n, as have all later ones, since no write lowers it. A Save under a lower epoch
// either names a revision from before, and loses the comparison, or one with the fence, and
// is refused. That Save looks at the lease besides is for the contract's sake: whoever lost
// the partition is told before the new owner begins.
package groups

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// DefaultMaxFacts is how many entries a group may have, and DefaultMaxFactBytes what they may
// measure together, that asks for no other number. Whoever reads them reads all at once.
const (
	DefaultMaxEntries    = 10_000
	DefaultMaxEntryBytes = 16 << 20
)

// What callers branch on, beside what processor.Store and the broker answer.
var (
	// ErrInvalid: a record that was to be written is not of the form allowed.
	ErrInvalid = errors.New("invalid record")
	// ErrTooManyEntries: the group has as many entries as it may have, or as large ones.
	ErrTooManyEntries = errors.New("the group has too many entries")
)

// Broker is what a registry asks about hubs and groups. *broker.Broker is one.
type Broker interface {
	Namespace() string
	Hubs() []broker.Hub
	Groups(ctx context.Context, hub string) ([]broker.Group, error)
	GroupRecords(ctx context.Context, hub, group string) (broker.GroupRecords, error)
	GroupGone(ctx context.Context, r broker.GroupRecords) bool
	Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error)
	Receivers(ctx context.Context, hub, group string) ([]broker.ReceiverInfo, error)
	Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error)
}

// Config is what a registry works with.
type Config struct {
	// Meta keeps the records and Broker knows the groups. Both are required; the registry closes
	// neither.
	Meta   meta.Store
	Broker Broker
	// MaxEntries is how many entries a group may have; 0 means DefaultMaxFacts. With several
	// nodes it is a bound for each.
	MaxEntries int
	// MaxEntryBytes is what a group's entries may measure together, as they are stored; 0 means
	// DefaultMaxFactBytes.
	MaxEntryBytes int
	// Log takes what the registry carries on from; nil means slog.Default().
	Log *slog.Logger
	// Metrics is where lag and ownership are collected; nil means nowhere.
	Metrics prometheus.Registerer
}

// Registry keeps the records of all groups. All methods may be called by many goroutines at
// once. It has no goroutines of its own, and nothing to close.
//
// The namespace of a processor.Group is ignored: a yard has one. Hubs are found in any spelling,
// and so is $Default; the errors are a *broker.NotFoundError where there is no such hub,
// group or partition.
type Registry struct {
	meta   meta.Store
	broker Broker
	log    *slog.Logger
	tally  *tally

	subscribers subscribers
}

var (
	_ processor.Store   = (*Registry)(nil)
	_ processor.Watcher = (*Registry)(nil)
)

// New makes a registry.
func New(cfg Config) (*Registry, error) {
	if cfg.Meta == nil || cfg.Broker == nil {
		return nil, errors.New("keep groups: both a meta store and a broker are required")
	}
	k := &Registry{
		meta: cfg.Meta, broker: cfg.Broker, log: cfg.Log,
		tally: newTally(size{cmp.Or(cfg.MaxEntries, DefaultMaxEntries), cmp.Or(cfg.MaxEntryBytes, DefaultMaxEntryBytes)}),
	}
	if k.log == nil {
		k.log = slog.Default()
	}
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(newCollector(k)); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// find gives the place of a group's records.
func (k *Registry) find(ctx context.Context, g processor.Group) (location, error) {
	if err := context.Cause(ctx); err != nil {
		return location{}, err
	}
	r, err := k.broker.GroupRecords(ctx, g.Hub, g.Group)
	return location{r}, err
}

// location is where a group's records are.
type location struct{ broker.GroupRecords }

func (p location) leases() string                     { return p.Prefix + "lease/" }
func (p location) lease(partition string) string      { return p.leases() + partition }
func (p location) checkpoints() string                { return p.Prefix + "checkpoint/" }
func (p location) checkpoint(partition string) string { return p.checkpoints() + partition }
func (p location) stored() string                     { return p.Prefix + "fact/" }
func (p location) entry(key string) string            { return p.stored() + key }

// has wants the partition to be one of the hub's, so that a group has no more leases and
// checkpoints than the hub has partitions.
func (p location) has(partition string) error {
	if n, ok := partitionNumber(partition); ok && n < p.Hub.Partitions {
		return nil
	}
	return &broker.NotFoundError{Kind: broker.KindPartition, Hub: p.Hub.Name, Name: partition, Partitions: p.Hub.Partitions}
}

// gone is what is answered when the group was deleted under a call.
func (p location) gone() error {
	return &broker.NotFoundError{Kind: broker.KindGroup, Hub: p.Hub.Name, Name: p.Group.Name}
}

// created is a record that did not exist before.
type created struct {
	key      string
	revision meta.Revision
}

// settle takes records back that were created while their group was deleted: the deletion
// may have listed the records before, and would not know of them.
func (k *Registry) settle(ctx context.Context, at location, records ...created) error {
	if len(records) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // who leaves now leaves the record
	if !k.broker.GroupGone(ctx, at.GroupRecords) {
		return nil
	}
	for _, c := range records {
		err := k.meta.Delete(ctx, c.key, c.revision)
		if err != nil && !errors.Is(err, meta.ErrNotFound) && !errors.Is(err, meta.ErrConflict) {
			k.log.Warn("a record of a deleted group stays behind", "key", c.key, "error", err)
		}
	}
	return at.gone()
}

// now has the precision that clients are shown.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
