// Package groups keeps what the yard knows of consumer groups: who owns which partition, how
// far each has come, and the small entries that the instances of a processor leave each other.
// It is the yard's own processor.Store, for every listener alike, and makes of it the table that
// operators see.
//
// # Records
//
// All records are entries of the meta store, under a prefix that the broker gives to one
// incarnation of a group of one incarnation of a hub. It deletes them with either, and a new hub or
// group of the same name begins with none. docs/internals/format/groups.md shows them.
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
// the partition learns it before the new owner begins.
//
// # Who may change what
//
// Within the yard's process everybody may. Clients come as a Caller (ClaimBy, PutBy, …): what they
// may do without the right to manage is the table mayListen, by whose a record is to them. That is
// judged by the very revision that the compare-and-set then expects, so that nothing can change in
// between; where this node has only read an older one nothing is judged, and ErrBehind is the
// answer. Nothing that such a client says of a version is believed.
package groups

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/oldest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// DefaultMaxEntries is how many entries a group may have, and DefaultMaxEntryBytes what they may
// measure together. Whoever reads them reads all at once.
const (
	DefaultMaxEntries    = 10_000
	DefaultMaxEntryBytes = 16 << 20
)

// maxAtOnce bounds how many changes one call has under way. The store makes one durable
// write of those that arrive while another is under way.
const maxAtOnce = 64

// What callers branch on, beside the errors of processor.Store and the broker.
var (
	// ErrInvalid: a record that was to be written is not of the form allowed.
	ErrInvalid = errors.New("invalid record")
	// ErrTooManyEntries: the group has as many entries as it may have, or as large ones.
	ErrTooManyEntries = errors.New("the group has too many entries")
)

// Broker is what a registry needs to know of hubs and groups. *broker.Broker is one.
type Broker interface {
	Namespace() string
	Hubs() []broker.Hub
	Groups(ctx context.Context, hub string) ([]broker.Group, error)
	GroupRecords(ctx context.Context, hub, group string) (broker.GroupRecords, error)
	GroupGone(ctx context.Context, r broker.GroupRecords) bool
	Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error)
	Receivers(ctx context.Context, hub, group string) ([]broker.ReceiverInfo, error)
	Disconnect(ctx context.Context, hub, group, partition string) (int, error)
	Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error)
}

// Config is what a registry works with.
type Config struct {
	// Meta keeps the records and Broker knows the groups. Both are required; the registry closes
	// neither.
	Meta   meta.Store
	Broker Broker
	// MaxEntries is how many entries a group may have; 0 means DefaultMaxEntries. With several
	// nodes it is a bound for each.
	MaxEntries int
	// MaxEntryBytes is what a group's entries may measure together, as they are stored; 0 means
	// DefaultMaxEntryBytes.
	MaxEntryBytes int
	// Circuit judges how an instance of a function that the yard does not run changes its circuit
	// (CircuitPrefix), without the right to manage: an error says why it may not, and else it is in
	// the name of the instance given, if any. before is nil where there is no record. nil means
	// that only operators change circuits.
	Circuit func(before, after []byte) (instance string, err error)
	// Foreign gives the checkpoints of a group that processors of other libraries keep in the yard's
	// blobs, perhaps several of a partition; nil means that there are none.
	Foreign func(ctx context.Context, hub, group string) ([]Foreign, error)
	// Log takes what the registry carries on from; nil means slog.Default().
	Log *slog.Logger
	// Metrics is where lag and ownership are collected; nil means nowhere.
	Metrics prometheus.Registerer
	// Notes takes who came and went and what changed its owner; nil means nobody does.
	Notes activity.Notes
}

// Foreign is a checkpoint that a processor of another library keeps in a container of blobs.
type Foreign struct {
	processor.Checkpoint
	Container string
}

// Registry keeps the records of all groups. All methods may be called by many goroutines at
// once. It has no goroutines of its own, and nothing to close.
//
// The namespace of a processor.Group is ignored: a yard has one. Hubs are found in any spelling,
// and so is $Default; the errors are a *broker.NotFoundError where there is no such hub,
// group or partition.
type Registry struct {
	meta    meta.Store
	broker  Broker
	log     *slog.Logger
	tally   *tally
	circuit func(before, after []byte) (instance string, err error)
	foreign func(ctx context.Context, hub, group string) ([]Foreign, error)
	// complaints of foreign, now and then.
	complaints rate.Sometimes
	notes      activity.Notes
	itself     Caller
	// up is since when instances can renew what they hold.
	up time.Time

	subscribers subscribers
	oldest      oldest.Times // events that groups have yet to read
}

var (
	_ processor.Store         = (*Registry)(nil)
	_ processor.Watcher       = (*Registry)(nil)
	_ processor.PresenceStore = (*Registry)(nil)
)

// New makes a registry.
func New(cfg Config) (*Registry, error) {
	if cfg.Meta == nil || cfg.Broker == nil {
		return nil, errors.New("keep groups: both a meta store and a broker are required")
	}
	k := &Registry{
		meta: cfg.Meta, broker: cfg.Broker, log: cmp.Or(cfg.Log, slog.Default()), circuit: cfg.Circuit,
		foreign: cfg.Foreign, complaints: rate.Sometimes{Interval: time.Minute}, notes: cfg.Notes, itself: itself(), up: now(),
		tally: &tally{
			most:   size{cmp.Or(cfg.MaxEntries, DefaultMaxEntries), cmp.Or(cfg.MaxEntryBytes, DefaultMaxEntryBytes)},
			groups: make(map[string]counted),
		},
	}
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(newCollector(k)); err != nil {
			return nil, err
		}
	}
	return k, nil
}
