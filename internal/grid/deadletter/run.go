package deadletter

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Run writes letters to their targets and removes logs of deleted subscriptions, until ctx ends.
// One goroutine a subscription that has something to be written: a target that hangs holds up
// nobody else.
func (s *Service) Run(ctx context.Context) error {
	var writers sync.WaitGroup
	defer writers.Wait()
	changed := make(chan struct{}, 1)
	stop := s.cfg.Topics.OnChange(func() { ring(changed) })
	defer stop()
	s.catchUp(ctx, &writers)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.begin:
			s.mu.Lock()
			wanted := slices.Collect(maps.Keys(s.wanted))
			clear(s.wanted)
			s.mu.Unlock()
			for _, id := range wanted {
				s.startWriter(ctx, &writers, id)
			}
		case <-changed:
			s.mu.Lock()
			for _, w := range s.writers {
				ring(w.news)
			}
			s.mu.Unlock()
			s.catchUp(ctx, &writers)
		}
	}
}

// ring rings a bell, which has room for one ring, unless it has rung already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// catchUp looks at all subscriptions: it removes what deleted ones left, and sees to it that all
// that has to be written is. A removal that fails is tried with the next change, or start.
//
// Boxes are listed before the subscriptions are: a box is made for a subscription that exists, so
// that one without is of a deleted one. The other way round it could be of one just made.
func (s *Service) catchUp(ctx context.Context, writers *sync.WaitGroup) {
	s.mu.Lock()
	boxes := slices.Collect(maps.Values(s.boxes))
	s.mu.Unlock()
	known := s.cfg.Topics.Snapshot().Subscriptions
	for _, b := range boxes {
		if ctx.Err() != nil {
			return
		}
		if known[b.id] != nil {
			if s.wants(ctx, b) {
				s.startWriter(ctx, writers, b.id)
				continue
			}
			s.mu.Lock()
			writes := s.writers[b.id] != nil
			s.mu.Unlock()
			if !writes {
				s.retain(ctx, b, false)
			}
			continue
		}
		if err := b.remove(ctx, s.cfg.Engine); err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("dead letters of a deleted subscription are still there, the next change tries again",
					"subscription", b.id, "error", err)
			}
			continue
		}
		s.mu.Lock()
		delete(s.boxes, b.id)
		delete(s.wanted, b.id)
		s.mu.Unlock()
	}
}

// wants says whether a writer has something to do: to write, or to forget the trouble with a target
// that the subscription has no longer. Where that cannot be known the writer finds out.
func (s *Service) wants(ctx context.Context, b *box) bool {
	counts, err := s.Counts(ctx, b.id)
	if err != nil || counts.Unwritten > 0 {
		return true
	}
	sub := s.cfg.Topics.Snapshot().Subscriptions[b.id]
	return sub != nil && !written(sub.DeadLetter) && (counts.Problem != "" || !counts.Since.IsZero())
}

func (s *Service) startWriter(ctx context.Context, all *sync.WaitGroup, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.writers[id]; w != nil {
		ring(w.bell)
		return
	}
	w := &writer{s: s, id: id, bell: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	s.writers[id] = w
	all.Go(func() { w.run(ctx) })
}

// endWriter lets a writer go unless somebody rang meanwhile.
func (s *Service) endWriter(w *writer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.bell:
		return false
	default:
		delete(s.writers, w.id)
		return true
	}
}
