// Package looks makes fresh looks at a store that several nodes share, and bounds them.
//
// A node hears of what others change within milliseconds, but who changes something through one node
// and uses it through another at once may be faster. So before a node says that something does not
// exist, or that a key is wrong, it looks once with fresh reads. That costs a durable write, and names
// that do not exist are free to invent. So those who ask at the same time share a look, and there are
// only so many in a second: beyond them the answer is what the node knows. Where the store is out of reach
// there is no answer: who cannot look must not say that there is nothing.
package looks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

const (
	// PerSecond and Burst bound the looks that a Looks makes.
	PerSecond = 10
	Burst     = 20
	// gather is how long one waits for others who ask the same, timeout bounds a look.
	gather  = 2 * time.Millisecond
	timeout = 2 * time.Second
)

// Looks makes fresh looks. The nil Looks makes none: it is for a node that has no others, and so knows
// everything. All methods may be called by many goroutines at once.
type Looks struct {
	store meta.Store
	pace  *quota.Bucket

	mu sync.Mutex
	// next are looks that have not begun, by prefix; failed is why the last one failed, nil if it did not. Guarded by
	// mu.
	next   map[string]*look
	failed error
}

// look is one look, for all who came before it began.
type look struct {
	done chan struct{}
	err  error // set before done is closed
}

// New makes one for a store.
func New(store meta.Store) *Looks {
	return &Looks{
		store: store, pace: quota.New(quota.Rate{PerSecond: PerSecond, Burst: Burst}),
		next: make(map[string]*look),
	}
}

// Fresh makes reads under a prefix as new as the call (see meta.Store), and reports whether they are. It
// waits for some seconds at most. Without an error, false means that what the node knows has to do. Errors:
// meta.ErrUnavailable, or ctx's.
func (l *Looks) Fresh(ctx context.Context, prefix string) (bool, error) {
	if l == nil {
		return false, nil
	}
	l.mu.Lock()
	at := l.next[prefix]
	if at != nil {
		l.mu.Unlock()
		select {
		case <-at.done:
			return at.err == nil, at.err
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	if l.pace.Take(1, time.Now()) > 0 {
		defer l.mu.Unlock()
		return false, l.failed
	}
	at = &look{done: make(chan struct{})}
	l.next[prefix] = at
	l.mu.Unlock()
	// Others wait for it who may be more patient than the first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = sleep.For(ctx, gather, nil)
	l.mu.Lock()
	delete(l.next, prefix)
	l.mu.Unlock()
	if err := l.store.Fresh(ctx, prefix); err != nil {
		at.err = fmt.Errorf("%w: what other nodes have changed cannot be looked up: %v", meta.ErrUnavailable, err)
	}
	l.mu.Lock()
	l.failed = at.err
	l.mu.Unlock()
	close(at.done)
	return at.err == nil, at.err
}
