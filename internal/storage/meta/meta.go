// Package meta says what the store of small durable entries is: hub definitions,
// groups, policies, leases, checkpoints, cursors, breaker states. It is a contract,
// with its conformance suite in metatest, and holds no I/O.
//
// Every value has a revision, and compare-and-set is the only way to change one. A
// read may be stale on a replicated store: never read and then trust, let a
// compare-and-set decide and a watch tell.
package meta

import "context"

// Revision orders the changes of one key. Each change of a key, its deletion among them,
// gets a higher one than every change of that key before it. Revisions of different keys
// say nothing about each other: a store may keep its keys in several places that count
// for themselves. Zero means that the key does not exist.
type Revision uint64

// MaxKeyBytes and MaxValueBytes bound what one entry may measure.
const (
	MaxKeyBytes   = 1024
	MaxValueBytes = 512 << 10
)

// Entry is one entry.
type Entry struct {
	// Key is segments joined by '/', none of them empty. A segment is any text
	// without '/' and without control characters.
	Key      string
	Value    []byte
	Revision Revision
}

// Change is what a watch tells: the newest state of one key.
type Change struct {
	Entry
	// Deleted means that the key is gone; Revision is that of the deletion, Value nil.
	Deleted bool
}

// Store keeps entries. All methods may be called by many goroutines at once. Slices
// given and taken belong to the caller.
type Store interface {
	// Get reads one entry. It may be stale, but never older than what this process
	// has seen the store acknowledge. Errors: ErrNotFound, ErrInvalid, ErrClosed;
	// ErrUnavailable where the store cannot be read that far.
	Get(ctx context.Context, key string) (Entry, error)

	// List reads all entries whose key begins with prefix, in byte order of the keys.
	// The prefix is empty or ends in '/'. Stale as Get.
	List(ctx context.Context, prefix string) ([]Entry, error)

	// Fresh waits until the reads of this process under prefix, which is empty or ends in
	// '/', are not older than the call: they see whatever was acknowledged to anyone before
	// it began. Errors: ErrInvalid, ErrClosed, ErrUnavailable, or ctx's own; reads are
	// stale as ever then.
	//
	// It is for two sides that must not miss each other, each of which writes a key of its
	// own and then looks for the other's, as who makes a record of a group and who deletes
	// the group do. Both call Fresh between the two, so that at least one of them sees the
	// other. It may cost a durable write: whoever lets a compare-and-set decide needs none.
	Fresh(ctx context.Context, prefix string) error

	// CompareAndSet stores value if the key's revision is the expected one (zero: if
	// the key does not exist) and gives the new revision. It is durable when it
	// returns. Errors: ErrConflict, ErrInvalid, ErrNoSpace, ErrUnavailable, ErrClosed;
	// nothing was changed. ErrUncertain, or ctx's own error: it may have been.
	//
	// After ErrConflict the reads of this process are at least as new as what conflicted,
	// so that to read and try again gets on and does not lose to the same state twice.
	//
	// Of a key that was deleted the only valid expectation is zero: the revision of its
	// deletion, which a watch tells, is ErrConflict. Else who keeps the newest revision
	// of each key, as a watcher does, would bring a deleted lease back to life and take
	// it for an update. A store that keeps deletions as entries of their own has to see
	// to it, and can without a race, since what a revision was never changes: for
	// instance by a bit in the number that only deletions have.
	CompareAndSet(ctx context.Context, key string, expected Revision, value []byte) (Revision, error)

	// Delete removes the key under the same conditions, with the same errors; the expected revision
	// is not zero. A key deleted and created again has a higher revision than before.
	Delete(ctx context.Context, key string, expected Revision) error

	// Watch tells the present state of every key under prefix and then each change, until ctx ends.
	// The state is stale as Get: never older than what this process had seen acknowledged when it
	// called Watch. Whether it is fixed then or by the first Next is the store's choice. Of several
	// changes to one key only the newest may be told; the changes of one key come in order. A slow
	// reader holds up nobody and costs at most one change per key.
	Watch(ctx context.Context, prefix string) (Watcher, error)
}

// Watcher is one running watch, used by one goroutine at a time.
type Watcher interface {
	// Next waits for something to tell and gives it. The first call gives the present
	// state, which may be empty; every later one at least one change. What was changed
	// between Watch and the first call is in the state or comes after it, and a key
	// deleted before may be told as deleted.
	//
	// After the watch's context has ended, or the store was closed, it gives that error.
	// A watch that may have missed something gives ErrWatchLost rather than go on; one that
	// cannot be kept up gives ErrUnavailable. Both are mended by watching again.
	Next() ([]Change, error)
}
