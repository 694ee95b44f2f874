package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// A node hears of what others create within milliseconds, but who creates a hub through one node and
// uses it through another at once may be faster. So before a node says that a hub or group does not
// exist it looks once with fresh reads. That costs a durable write, and names that do not exist are
// free to invent. So those who ask at the same time share a look, and there are only so many in a
// second: beyond them the answer is what this node knows.

const (
	// looksPerSecond and looksBurst bound the fresh looks of a node.
	looksPerSecond = 10
	looksBurst     = 20
	// lookGather is how long one waits for others who ask the same, lookTimeout bounds it.
	lookGather  = 2 * time.Millisecond
	lookTimeout = 2 * time.Second
)

// lookups makes fresh looks at the store. Nil where there is one node only: it knows everything.
type lookups struct {
	store meta.Store
	pace  *quota.Bucket

	mu sync.Mutex
	// next are looks that have not begun, by prefix. Guarded by mu.
	next map[string]*lookup
}

// lookup is one look, for all who came before it began.
type lookup struct {
	done chan struct{}
	err  error // set before done is closed
}

func newLookups(store meta.Store) *lookups {
	return &lookups{
		store: store, pace: quota.New(quota.Rate{PerSecond: looksPerSecond, Burst: looksBurst}),
		next: make(map[string]*lookup),
	}
}

// fresh makes reads under a prefix as new as the call, and reports whether they are. It waits for
// lookTimeout at most.
func (l *lookups) fresh(ctx context.Context, prefix string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	look := l.next[prefix]
	if look != nil {
		l.mu.Unlock()
		return until(ctx, look.done) == nil && look.err == nil
	}
	if l.pace.Take(1, time.Now()) > 0 {
		l.mu.Unlock()
		return false
	}
	look = &lookup{done: make(chan struct{})}
	l.next[prefix] = look
	l.mu.Unlock()
	// Others wait for it who may be more patient than the first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	_ = sleep.For(ctx, lookGather, nil)
	l.mu.Lock()
	delete(l.next, prefix)
	l.mu.Unlock()
	look.err = l.store.Fresh(ctx, prefix)
	close(look.done)
	return look.err == nil
}

// find gives a hub; a *NotFoundError where there is none, also in the store.
func (b *Broker) find(ctx context.Context, name string) (*hub, error) {
	h, err := b.hubs.known(name)
	if err == nil || !wellFormed(name) || !b.lookups.fresh(ctx, hubsPrefix) {
		return h, err
	}
	if err := b.definitions.Refresh(ctx, hubKey(fold(name))); err != nil {
		if !errors.Is(err, meta.ErrNotFound) {
			b.log.Warn("a hub is not known, and cannot be looked up", "error", err)
		}
		return nil, hubNotFound(name)
	}
	return b.hubs.known(name)
}

// LookUp is Hub for who is about to tell a client with a right to that name that there is no such
// hub: another node may have created it a moment ago. It may wait for storage.
func (b *Broker) LookUp(ctx context.Context, name string) (Hub, error) {
	h, err := b.find(ctx, name)
	if err != nil {
		return Hub{}, err
	}
	return h.Hub, nil
}
