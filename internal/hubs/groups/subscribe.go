package groups

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// lostPause is how long to wait before a watch that was lost begins anew.
const lostPause = 250 * time.Millisecond

// subscribers hear of changes by one watch of all groups: a thousand functions in the yard would
// else have two thousand goroutines that wait for something to happen.
type subscribers struct {
	mu       sync.Mutex
	followed bool                        // guarded by mu: Follow tells them
	byGroup  map[string]map[*func()]bool // guarded by mu; by the prefix of a group's records
}

var _ processor.Subscriber = (*Registry)(nil)

// Subscribe calls changed whenever Watch would tell of a change, until ctx ends;
// errors.ErrUnsupported where nobody runs Follow.
func (k *Registry) Subscribe(ctx context.Context, g processor.Group, changed func()) error {
	at, err := k.find(ctx, g)
	if err != nil {
		return err
	}
	s := &k.subscribers
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.followed {
		return errors.ErrUnsupported
	}
	if s.byGroup[at.Prefix] == nil {
		s.byGroup[at.Prefix] = map[*func()]bool{}
	}
	s.byGroup[at.Prefix][&changed] = true
	context.AfterFunc(ctx, func() { s.remove(at.Prefix, &changed) })
	return nil
}

func (s *subscribers) remove(prefix string, changed *func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.byGroup[prefix], changed); len(s.byGroup[prefix]) == 0 {
		delete(s.byGroup, prefix)
	}
}

// Follow tells subscribers of changes until ctx ends; it calls ready once they can subscribe. A
// watch that is lost begins anew, and all are told. One Follow at a time; an error means that
// nobody is told any more.
func (k *Registry) Follow(ctx context.Context, ready func()) error {
	s := &k.subscribers
	defer s.follow(false)
	for {
		err := k.follow(ctx, func() {
			s.follow(true)
			ready()
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, meta.ErrWatchLost):
			return err
		}
		k.log.Warn("watch of the groups was lost, beginning anew", "error", err)
		timer := time.NewTimer(lostPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (s *subscribers) follow(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed = is; s.byGroup == nil {
		s.byGroup = map[string]map[*func()]bool{}
	}
}

// follow watches all groups until that fails.
func (k *Registry) follow(ctx context.Context, ready func()) error {
	watch, err := k.meta.Watch(ctx, broker.RecordsPrefix)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return watchError(ctx, err)
		}
		changed := map[string]bool{}
		for _, c := range changes {
			prefix := groupOf(c.Key)
			seen := watched{location{broker.GroupRecords{Prefix: prefix}}, values}
			if seen.changes([]meta.Change{c}) {
				changed[prefix] = true
			}
		}
		if first {
			ready()
		}
		k.subscribers.notify(func(prefix string) bool { return first || changed[prefix] })
	}
}

// groupOf is the prefix of the group that a record is of: records/LOG/INCARNATION/.
func groupOf(key string) string {
	end := 0
	for range 3 {
		end += strings.IndexByte(key[end:], '/') + 1
	}
	return key[:end]
}

func (s *subscribers) notify(concerns func(prefix string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix, all := range s.byGroup {
		if !concerns(prefix) {
			continue
		}
		for changed := range all {
			(*changed)()
		}
	}
}
