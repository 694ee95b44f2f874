package groups

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// subscribers hear of changes by one watch of all groups: a thousand functions in the yard would
// else have two thousand goroutines that wait for something to happen.
type subscribers struct {
	mu       sync.Mutex
	followed bool                            // guarded by mu: Follow notifies them
	byGroup  map[string]map[*subscriber]bool // guarded by mu; by the prefix of a group's records
}

// homeless is the prefix of those whose group was deleted, until there is one of its name again.
const homeless = ""

type subscriber struct {
	group   processor.Group
	changed func()
	at      group // guarded by subscribers.mu; a zero one where it is homeless
}

var _ processor.Subscriber = (*Registry)(nil)

// Subscribe calls changed whenever Watch would report a change, until ctx ends. Where the group is
// deleted it goes on with the next of its name, which has other records.
// errors.ErrUnsupported where nobody runs Follow.
func (k *Registry) Subscribe(ctx context.Context, of processor.Group, changed func()) error {
	at, err := k.find(ctx, of)
	if err != nil {
		return err
	}
	s := &k.subscribers
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.followed {
		return errors.ErrUnsupported
	}
	one := &subscriber{group: of, changed: changed}
	s.addLocked(one, at)
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removeLocked(one)
	})
	return nil
}

func (s *subscribers) addLocked(one *subscriber, at group) {
	if s.byGroup[at.Prefix] == nil {
		s.byGroup[at.Prefix] = map[*subscriber]bool{}
	}
	s.byGroup[at.Prefix][one], one.at = true, at
}

// removeLocked is false where it has left already.
func (s *subscribers) removeLocked(one *subscriber) bool {
	prefix := one.at.Prefix
	there := s.byGroup[prefix][one]
	if delete(s.byGroup[prefix], one); len(s.byGroup[prefix]) == 0 {
		delete(s.byGroup, prefix)
	}
	return there
}

// Follow notifies subscribers of changes until ctx ends; it calls ready once they can subscribe. A
// watch that is lost, or whose store is out of reach, begins anew, and all are notified. One Follow at a time; an error means that
// nobody is notified any more.
func (k *Registry) Follow(ctx context.Context, ready func()) error {
	s := &k.subscribers
	defer s.follow(false)
	return mirror.Follow(ctx, func(ctx context.Context, begun func()) error {
		return k.follow(ctx, func() {
			begun()
			s.follow(true)
			ready()
		})
	}, func(err error) { k.log.Warn("watch of the groups was lost, beginning anew", "error", err) })
}

func (s *subscribers) follow(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed = is; s.byGroup == nil {
		s.byGroup = map[string]map[*subscriber]bool{}
	}
}

// follow watches all groups until that fails.
func (k *Registry) follow(ctx context.Context, ready func()) error {
	watch, err := k.meta.Watch(ctx, broker.RecordsPrefix)
	if err != nil {
		return err
	}
	seen := watched{}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return watchError(ctx, err)
		}
		changed, deleted := map[string]bool{}, map[string]bool{}
		for _, c := range changes {
			prefix := groupOf(c.Key)
			deleted[prefix] = deleted[prefix] || c.Deleted
			if seen.take(prefix, []meta.Change{c}) {
				changed[prefix] = true
			}
		}
		if first {
			ready()
		}
		k.rehome(ctx, func(prefix string) bool { return first || deleted[prefix] }, changed)
		k.subscribers.notify(changed, first)
	}
}

// rehome finds the subscribers whose group may have been deleted, and lets those whose group was
// hear of the one that has its name now, once there is one: any change may be its first. All whom
// it moves are among the changed.
func (k *Registry) rehome(ctx context.Context, mayBeGone func(prefix string) bool, changed map[string]bool) {
	s := &k.subscribers
	s.mu.Lock()
	looked := map[*subscriber]group{}
	for prefix, all := range s.byGroup {
		for one := range all {
			if prefix == homeless && len(changed) > 0 || mayBeGone(prefix) {
				looked[one] = one.at
			}
		}
	}
	s.mu.Unlock()
	for one, at := range looked {
		if at.Prefix != homeless && !k.broker.GroupGone(ctx, at.GroupRecords) {
			continue
		}
		now, err := k.find(ctx, one.group)
		if err != nil || now.Prefix == at.Prefix || k.broker.GroupGone(ctx, now.GroupRecords) {
			now = group{}
		}
		s.mu.Lock()
		if s.removeLocked(one) {
			s.addLocked(one, now)
			changed[now.Prefix] = true
		}
		s.mu.Unlock()
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

// notify calls those whose group has changed, or everybody.
func (s *subscribers) notify(changed map[string]bool, everybody bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix, all := range s.byGroup {
		if everybody || changed[prefix] {
			for one := range all {
				one.changed()
			}
		}
	}
}
