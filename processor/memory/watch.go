package memory

import (
	"context"

	"github.com/eventyard/eventyard/processor"
)

// Watch tells of changes until ctx ends.
func (s *Store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	if err := s.watch(ctx, g, changed); err != nil {
		return err
	}
	defer s.unwatch(g, changed)
	ready()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s *Store) watch(ctx context.Context, g processor.Group, changed chan<- struct{}) error {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	r.watchers[changed]++
	return nil
}

func (s *Store) unwatch(g processor.Group, changed chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watchers := s.groups[g.Canonical()].watchers
	if watchers[changed]--; watchers[changed] == 0 {
		delete(watchers, changed)
	}
}
