package local

import (
	"context"
	"sync"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// tails wake readers that rest at the end of a partition. One goroutine waits at each partition
// where somebody rests, however many do: a hundred idle functions on sixteen partitions would else
// need sixteen hundred.
type tails struct {
	broker *broker.Broker
	mu     sync.Mutex // taken before a reader's
	open   map[string]*tail
}

// tail waits for the next event of a partition, once.
type tail struct {
	cancel  context.CancelFunc
	resting map[*reader]rest // guarded by tails.mu
}

// rest is how a reader is woken, and how its context is kept from doing so.
type rest struct {
	wake func()
	stop func() bool
}

// Await calls wake once, soon after Next has something to say: an event has come, the reader has
// ended, or ctx has. Until then Next is not to be called. wake may be called before Await returns,
// and does not wait.
func (r *reader) Await(ctx context.Context, wake func()) {
	if !r.source.tails.rest(r.until(ctx), r, wake) {
		wake()
	}
}

// rest has a reader woken; false: there is no need to wait. What comes before the tail is opened
// the reader itself finds, what comes later the tail. Nobody is woken while the lock is held.
func (t *tails) rest(ctx context.Context, r *reader, wake func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := r.source.name + "/" + r.cfg.Partition
	one := t.open[at]
	if one == nil {
		tailing, cancel := context.WithCancel(context.Background())
		// Whatever comes, also what ends a transaction: that may be what readers rest for.
		cursor, err := t.broker.RawCursor(tailing, r.source.name, r.cfg.Partition, eventlog.Latest())
		if err != nil {
			cancel()
			return false
		}
		one = &tail{cancel: cancel, resting: map[*reader]rest{}}
		t.open[at] = one
		go t.follow(tailing, at, one, cursor)
	}
	if r.hasNews(ctx) {
		t.closeIdleLocked(at, one)
		return false
	}
	one.resting[r] = rest{wake: wake, stop: context.AfterFunc(ctx, func() {
		t.mu.Lock()
		_, there := one.resting[r]
		delete(one.resting, r)
		t.closeIdleLocked(at, one)
		t.mu.Unlock()
		if there {
			wake()
		}
	})}
	return true
}

// closeIdleLocked ends a tail at which nobody rests.
func (t *tails) closeIdleLocked(at string, one *tail) {
	if len(one.resting) > 0 {
		return
	}
	one.cancel()
	if t.open[at] == one {
		delete(t.open, at)
	}
}

// follow wakes all who rest when something has come, or the tail cannot be followed.
func (t *tails) follow(ctx context.Context, at string, one *tail, cursor eventlog.Cursor) {
	_, _ = cursor.Next(ctx) // who is woken meets what was wrong itself
	_ = cursor.Close()
	t.mu.Lock()
	woken := one.resting
	one.resting = nil
	t.closeIdleLocked(at, one)
	t.mu.Unlock()
	for _, r := range woken {
		r.stop()
		r.wake()
	}
}

// hasNews tells whether Next has something to say, without waiting for it.
func (r *reader) hasNews(ctx context.Context) bool {
	if r.unread != nil || r.final != nil || len(r.rest.Events) > 0 || !r.enter() {
		return true
	}
	run, err := r.cursor.TryNext(ctx)
	if err == nil {
		r.rest = run
	}
	return r.leave() != nil || err != nil || len(run.Events) > 0
}
