// Package meta says what the store of small durable facts is: hub definitions,
// groups, policies, leases, checkpoints, cursors, breaker states. It is a contract,
// with its conformance suite in metatest, and holds no I/O.
//
// Every value has a revision, and compare-and-set is the only way to change one. A
// read may be stale on a replicated store: never read and then trust, let a
// compare-and-set decide and a watch tell.
package meta

import (
	"context"
	"errors"
)

// Revision orders the changes of a store. Each change gets a higher one than every
// change before it, whatever the key. Zero means that the key does not exist.
type Revision uint64

// MaxKeyBytes and MaxValueBytes bound what one fact may measure.
const (
	MaxKeyBytes   = 1024
	MaxValueBytes = 512 << 10
)

// Entry is one fact.
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

// What a caller branches on.
var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the key's revision is another than expected. Nothing was changed.
	ErrConflict = errors.New("changed by someone else")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("meta store is closed")
	// ErrInvalid: the key or value is not of the form the contract allows.
	ErrInvalid = errors.New("invalid key or value")
	// ErrUncertain: storage failed under the change. It may or may not have been made.
	ErrUncertain = errors.New("outcome of the change is unknown")
)

// Store keeps facts. All methods may be called by many goroutines at once. Slices
// given and taken belong to the caller.
type Store interface {
	// Get reads one fact. It may be stale, but never older than what this process
	// has seen the store acknowledge. Errors: ErrNotFound, ErrInvalid, ErrClosed.
	Get(ctx context.Context, key string) (Entry, error)

	// List reads all facts whose key begins with prefix, in byte order of the keys.
	// The prefix is empty or ends in '/'. Stale as Get.
	List(ctx context.Context, prefix string) ([]Entry, error)

	// CompareAndSet stores value if the key's revision is the expected one (zero: if
	// the key does not exist) and gives the new revision. It is durable when it
	// returns. Errors: ErrConflict, ErrInvalid, ErrClosed; nothing was changed.
	// ErrUncertain, or ctx's own error: it may have been.
	CompareAndSet(ctx context.Context, key string, expected Revision, value []byte) (Revision, error)

	// Delete removes the key under the same condition; the expected revision is not
	// zero. A key deleted and created again has a higher revision than before.
	Delete(ctx context.Context, key string, expected Revision) error

	// Watch tells the present state of every key under prefix and then each change,
	// until ctx ends. Of several changes to one key only the newest may be told; the
	// changes of one key come in order. A slow reader holds up nobody and costs at
	// most one change per key.
	Watch(ctx context.Context, prefix string) (Watcher, error)
}

// Watcher is one running watch, used by one goroutine at a time.
type Watcher interface {
	// Next waits for something to tell and gives it. The first call gives the present
	// state, which may be empty; every later one at least one change. After the watch's
	// context has ended, or the store was closed, it gives that error.
	Next() ([]Change, error)
}
