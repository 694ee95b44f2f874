// Package memory is a processor.Store for tests: exact, watchable, and gone with the
// process. Instances that share a group share one Store.
//
// It starts no goroutine and waits for nothing but its lock and, in Watch, a channel, so that it
// can be used inside testing/synctest.
package memory

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

// Store keeps leases, checkpoints and entries in memory.
type Store struct {
	mu sync.Mutex
	// Guarded by mu.
	groups map[processor.Group]*records
	writes uint64 // makes versions: one counter for all, so that none comes back
}

var (
	_ processor.Store         = (*Store)(nil)
	_ processor.Watcher       = (*Store)(nil)
	_ processor.PresenceStore = (*Store)(nil)
)

// New makes an empty store.
func New() *Store { return &Store{groups: map[processor.Group]*records{}} }

// KeepsPresence: leases are kept as they are claimed.
func (s *Store) KeepsPresence() bool { return true }

// records are those of one group.
type records struct {
	leases      map[string]processor.Lease
	checkpoints map[string]processor.Checkpoint
	entries     map[string]processor.Entry
	watchers    map[chan<- struct{}]int // how often each is watching
}

// lock gives the group's records to a call whose context has not ended. The caller
// unlocks, also after an error.
func (s *Store) lock(ctx context.Context, g processor.Group) (*records, error) {
	s.mu.Lock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	g = g.Canonical()
	r := s.groups[g]
	if r == nil {
		r = &records{
			leases:      map[string]processor.Lease{},
			checkpoints: map[string]processor.Checkpoint{},
			entries:     map[string]processor.Entry{},
			watchers:    map[chan<- struct{}]int{},
		}
		s.groups[g] = r
	}
	return r, nil
}

// nextLocked gives the version and the time of a write.
func (s *Store) nextLocked() (processor.Version, time.Time) {
	s.writes++
	return processor.Version(strconv.FormatUint(s.writes, 10)), time.Now().Round(0)
}

// notify wakes who watches, without waiting for anyone.
func (r *records) notify() {
	for changed := range r.watchers {
		stores.Notify(changed)
	}
}

// Watch reports changes until ctx ends.
func (s *Store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	r, err := s.lock(ctx, g)
	if err == nil {
		r.watchers[changed]++
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.watchers[changed]--; r.watchers[changed] == 0 {
			delete(r.watchers, changed)
		}
	}()
	ready()
	<-ctx.Done()
	return context.Cause(ctx)
}
