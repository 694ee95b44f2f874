package metatest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// OpKind tells the operations of a Faulty apart.
type OpKind int

// One kind for each method of meta.Store and meta.Watcher.
const (
	OpGet OpKind = iota
	OpList
	OpSet
	OpDelete
	OpWatch
	OpNext
	OpFresh
)

// String is the kind as tests print it.
func (k OpKind) String() string {
	return [...]string{"get", "list", "set", "delete", "watch", "next", "fresh"}[k]
}

// Op is an operation about to be done.
type Op struct {
	Kind OpKind
	// Key is the key; of OpList, OpWatch, OpNext and OpFresh the prefix.
	Key string
	// Expected is the revision that an OpSet or OpDelete expects, Value what an OpSet is to store.
	Expected meta.Revision
	Value    []byte
	// N numbers the operations of this kind, beginning with 1.
	N int
}

// Changes tells whether the operation is an OpSet or OpDelete.
func (op Op) Changes() bool { return op.Kind == OpSet || op.Kind == OpDelete }

// Under tells whether the key, or the prefix, begins with prefix.
func (op Op) Under(prefix string) bool { return strings.HasPrefix(op.Key, prefix) }

// Faulty is a store that fails on purpose, in the manner of vfs.Faulty.
type Faulty struct {
	inner meta.Store

	mu      sync.Mutex
	inject  func(Op) error            // guarded by mu
	counts  map[OpKind]int            // guarded by mu
	watches map[*faultyWatcher]func() // guarded by mu: ends each running watch
}

var _ meta.Store = (*Faulty)(nil)

// NewFaulty wraps a store; until Inject it changes nothing.
func NewFaulty(inner meta.Store) *Faulty {
	return &Faulty{inner: inner, counts: make(map[OpKind]int), watches: make(map[*faultyWatcher]func())}
}

// Inject has f called before each operation, in place of an f given earlier; nil ends it. An error
// of f's is returned instead of doing the operation; After and Unheard make errors that do it all
// the same. f may block, which holds up that operation alone, may use the store inside the Faulty,
// and is called by many goroutines at once.
func (d *Faulty) Inject(f func(Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inject = f
}

// InjectOnce has f called before the first operation for which it is asked and when gives true, and
// never again.
func (d *Faulty) InjectOnce(when func(Op) bool, f func(Op) error) {
	var once sync.Once
	d.Inject(func(op Op) (err error) {
		if when(op) {
			once.Do(func() { err = f(op) })
		}
		return err
	})
}

// Count tells how many operations of a kind have been begun.
func (d *Faulty) Count(kind OpKind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[kind]
}

// LoseWatches ends all running watches of a prefix with meta.ErrWatchLost, also calls of Next that
// wait.
func (d *Faulty) LoseWatches(prefix string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w, end := range d.watches {
		if w.prefix == prefix {
			end()
		}
	}
}

// After has an operation done, and then answered with what f makes of its error.
func After(f func(error) error) error { return &after{f} }

// Unheard has an operation done, and answered with err where it succeeded: the answer was lost.
func Unheard(err error) error {
	return After(func(failed error) error { return cmp.Or(failed, err) })
}

// Shaky injects errors by chance: each into one of eight changes.
func Shaky(random *rand.Rand, errs ...error) func(Op) error {
	var mu sync.Mutex
	return func(op Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind != OpSet {
			return nil
		}
		if n := random.IntN(8); n < len(errs) {
			return errs[n]
		}
		return nil
	}
}

type after struct{ f func(error) error }

func (*after) Error() string { return "the operation is done first" }

// Get implements meta.Store.
func (d *Faulty) Get(ctx context.Context, key string) (entry meta.Entry, err error) {
	err = d.do(Op{Kind: OpGet, Key: key}, func() error {
		entry, err = d.inner.Get(ctx, key)
		return err
	})
	return entry, err
}

// List implements meta.Store.
func (d *Faulty) List(ctx context.Context, prefix string) (entries []meta.Entry, err error) {
	err = d.do(Op{Kind: OpList, Key: prefix}, func() error {
		entries, err = d.inner.List(ctx, prefix)
		return err
	})
	return entries, err
}

// Fresh implements meta.Store.
func (d *Faulty) Fresh(ctx context.Context, prefix string) error {
	return d.do(Op{Kind: OpFresh, Key: prefix}, func() error { return d.inner.Fresh(ctx, prefix) })
}

// CompareAndSet implements meta.Store.
func (d *Faulty) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (revision meta.Revision, err error) {
	err = d.do(Op{Kind: OpSet, Key: key, Expected: expected, Value: value}, func() error {
		revision, err = d.inner.CompareAndSet(ctx, key, expected, value)
		return err
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// Delete implements meta.Store.
func (d *Faulty) Delete(ctx context.Context, key string, expected meta.Revision) error {
	return d.do(Op{Kind: OpDelete, Key: key, Expected: expected}, func() error {
		return d.inner.Delete(ctx, key, expected)
	})
}

// Watch implements meta.Store.
func (d *Faulty) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	w := &faultyWatcher{store: d, prefix: prefix, ctx: ctx}
	err := d.do(Op{Kind: OpWatch, Key: prefix}, func() (err error) {
		inner, end := context.WithCancel(ctx)
		if w.inner, err = d.inner.Watch(inner, prefix); err != nil {
			end()
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.watches[w] = end
		context.AfterFunc(inner, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.watches, w)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// do counts the operation, asks the injected function, outside the lock so that it may block, and
// then does it or not.
func (d *Faulty) do(op Op, step func() error) error {
	d.mu.Lock()
	d.counts[op.Kind]++
	op.N = d.counts[op.Kind]
	inject := d.inject
	d.mu.Unlock()
	if inject == nil {
		return step()
	}
	err := inject(op)
	var later *after
	switch {
	case err == nil:
		return step()
	case errors.As(err, &later):
		return later.f(step())
	}
	return err
}

// faultyWatcher is a running watch of a Faulty.
type faultyWatcher struct {
	store  *Faulty
	inner  meta.Watcher
	prefix string
	ctx    context.Context // the watch's own; that of inner also ends when it is lost
}

func (w *faultyWatcher) Next() (changes []meta.Change, err error) {
	err = w.store.do(Op{Kind: OpNext, Key: w.prefix}, func() error {
		changes, err = w.inner.Next()
		if errors.Is(err, context.Canceled) && w.ctx.Err() == nil {
			return meta.ErrWatchLost
		}
		return err
	})
	return changes, err
}
