package processor

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Group is whose records a store is asked for: one consumer group of one hub.
type Group struct {
	// Namespace is the fully qualified name of the hub's namespace, such as
	// "myspace.servicebus.windows.net"; of a yard its host name, as its own records are
	// kept by hub alone.
	Namespace string
	Hub       string
	Group     string
}

// Canonical is the group in the one spelling that all spellings of it share: namespaces and
// hubs have no case, and neither has the group $Default; other groups have. Stores keep their
// records by it, or instances that spell a hub differently would not see each other.
func (g Group) Canonical() Group {
	g.Namespace, g.Hub = strings.ToLower(g.Namespace), strings.ToLower(g.Hub)
	if strings.EqualFold(g.Group, "$Default") {
		g.Group = "$Default"
	}
	return g
}

// Version distinguishes two states of one record. It changes with every write, also one
// that changes nothing else, and never comes back. Empty: the record does not exist.
type Version string

// Lease says who owns a partition.
type Lease struct {
	Partition string
	// Owner is the instance's id; empty: nobody, the partition is free.
	Owner string
	// Epoch rises with every acquisition, never falls, and is what the owner's reader
	// shows to the hub.
	Epoch int64
	// Presence is the life of its owner's presence that the lease hangs on: it is renewed whenever
	// that entry is, and ends with it. Empty: it is renewed by being written again. Only a
	// PresenceStore keeps it.
	Presence string
	// Acquired and Renewed are by the store's clock and for show only: whether a lease is dead is
	// judged by whether its Version changes, or that of the presence that it hangs on. Renewed is
	// never before Acquired.
	Acquired, Renewed time.Time
	Version           Version
}

// released is the lease as it is when nobody has it.
func (l Lease) released() Lease {
	l.Owner, l.Presence = "", ""
	return l
}

// Checkpoint is how far a group has come with a partition: everything up to and
// including Sequence is done.
type Checkpoint struct {
	Partition string
	// Sequence is -1 where it is not known; Offset is empty then or all that is known.
	Sequence int64
	Offset   string
	// Epoch is that of the lease under which it was saved; zero where the store cannot
	// keep it, or an operator or another program wrote it.
	Epoch int64
	// HubID distinguishes a hub from an earlier one of its name; empty where it is not known.
	HubID string
	// Updated is by the store's clock, for show.
	Updated time.Time
	Version Version
}

// Entry is a small record of a group, such as an instance's presence. Keys are 1 to 200 letters,
// digits, '-', '_', '.', ':' and '$', in segments joined by '/', none empty; values at most 16 KiB.
type Entry struct {
	Key     string
	Value   []byte
	Version Version
}

// Errors. Everything else that a store answers means that nothing is known:
// the write may have been made or not.
var (
	// ErrConflict: the record is not in the expected version. Nothing was written.
	ErrConflict = errors.New("the record was changed by someone else")
	// ErrFenced: the lease under which a checkpoint was to be saved is no longer the
	// partition's. Nothing was written: do not retry.
	ErrFenced = errors.New("another instance has taken the partition")
)

// Store keeps the leases, checkpoints and entries of consumer groups. Any number of
// processes use one at once; all methods may be called by many goroutines at once.
// Compare-and-set is the only way to change a record, except that an operator may force
// a checkpoint. "Cannot be read" is an error and never an empty answer.
//
// A write is durable when it returns, as durable as the store is at all. When a write
// fails with any error but ErrConflict and ErrFenced, it may have been made: the caller
// reads again to find out. Stores bound their own calls by the context alone; they may
// repeat reads, but not writes whose outcome they do not know.
type Store interface {
	// Leases reads all leases of a group, in no particular order. A partition that
	// was never owned has none.
	Leases(ctx context.Context, g Group) ([]Lease, error)

	// Claim writes leases, each on condition that the record's version is still the lease's Version
	// (empty: that it does not exist), and gives back those that were written, with their new
	// Version and times, in the order given. One whose condition fails is left out; that is no
	// error. It acquires (Owner and a higher Epoch), renews (the same Owner and Epoch; Acquired
	// stays, Presence may be another) and releases (an empty Owner, the same Epoch), any mixture at
	// once. An Epoch below the
	// recorded one is a failed condition, and so is the recorded one with another Owner, whether
	// the lease is owned or was released: no two owners ever have the same.
	//
	// With an error some may have been written: those that are known to be are returned with it.
	Claim(ctx context.Context, g Group, leases []Lease) ([]Lease, error)

	// Checkpoints reads all checkpoints of a group, in no particular order. A partition that was
	// begun and never saved may be among them, where the fence is kept with the checkpoint: without
	// a position (Sequence -1 and an empty Offset), but with the Version that Force has to name.
	Checkpoints(ctx context.Context, g Group) ([]Checkpoint, error)

	// Begin is called by the new owner of a partition before it reads: it gives the partition's
	// checkpoint (Sequence -1, an empty Offset and perhaps a Version if there is none) and fences:
	// once it has returned, no Save under a lower epoch will succeed, except, in stores that say
	// so, the very first of a partition. ErrFenced if the lease is not the partition's any more.
	Begin(ctx context.Context, g Group, lease Lease) (Checkpoint, error)

	// Save stores a checkpoint under a lease: owner and epoch have to be those of the partition's
	// lease, whatever its version (a renewal in between does no harm), and c.Version the one that
	// Begin or the last Save gave, empty if that was. It gives c with the lease's Partition and
	// Epoch and its new Version. ErrFenced as above, also where the version is another because the
	// next owner has begun meanwhile; ErrConflict if only the version is another, as after an
	// operator's move: Begin again and decide.
	Save(ctx context.Context, g Group, lease Lease, c Checkpoint) (Checkpoint, error)

	// Force stores a checkpoint for an operator, with any owner of the partition, on condition of
	// c.Version alone (as Checkpoints gave it; empty: there is none). An owner's next Save finds
	// ErrConflict.
	Force(ctx context.Context, g Group, c Checkpoint) (Checkpoint, error)

	// Entries reads the entries whose key begins with prefix, which is empty or ends in '/'.
	Entries(ctx context.Context, g Group, prefix string) ([]Entry, error)

	// Put stores an entry on condition of its Version (empty: it must not exist) and gives
	// it with the new one. ErrConflict.
	Put(ctx context.Context, g Group, e Entry) (Entry, error)

	// Remove deletes an entry on condition of its Version, which is not empty. ErrConflict,
	// also where it does not exist.
	Remove(ctx context.Context, g Group, e Entry) error
}

// Watcher is a Store that reports when something changes, so that nobody has to poll. Stores
// without it are asked every Config.Renew, or Config.Poll.
type Watcher interface {
	// Watch sends on changed, without ever blocking, after leases or entries of the group have
	// changed, by anybody (several changes may be reported as one), until ctx
	// ends; it returns then, or earlier with an error if it cannot go on, and changes
	// may have been missed: read, and watch again.
	//
	// Acquisitions and releases are reported, and entries that are new, have another value, or are
	// removed. Renewals, where owner and epoch stay, and entries written again with the value they
	// had need not be, and better are not: every instance does both all the time, and each would
	// wake all others. More may be reported than has changed.
	//
	// It calls ready once it will miss nothing from then on.
	//
	// changed has to have room for one: what is reported while nobody takes from it and it has none
	// is lost. Who takes from it and then reads has seen every change that was reported until then.
	// Checkpoints are not reported, though some stores do.
	Watch(ctx context.Context, g Group, ready func(), changed chan<- struct{}) error
}

// Subscriber is a Watcher that needs no goroutine of those who watch.
type Subscriber interface {
	// Subscribe has changed called after each change that Watch would report, until ctx ends.
	// Nothing is missed from when it returns: what could not be reported in time is made up for
	// by a call. changed is quick, asks the store for nothing, and is called by any goroutine, one
	// call at a time. errors.ErrUnsupported where this store has to be watched for now.
	Subscribe(ctx context.Context, g Group, changed func()) error
}

// PresenceStore is a Store in which a lease can hang on its owner's presence, so that an instance
// renews a thousand leases by one write. Without it, or where it says no, each lease is written
// again every Config.Renew.
type PresenceStore interface {
	// KeepsPresence reports whether Lease.Presence is stored: Claim and Leases give it to every
	// process as it was claimed, and a claim without one removes it. It neither blocks nor asks
	// anybody; until a store knows, it says no. A store whose leases are also judged by programs
	// that look at their versions alone, and keep no presence, has to say no.
	KeepsPresence() bool
}
