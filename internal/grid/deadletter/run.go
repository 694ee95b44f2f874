package deadletter

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Run writes letters to their places and removes logs of deleted subscriptions, until ctx ends. One
// goroutine a subscription that has something to be written: a place that hangs holds up nobody else.
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
			for _, id := range s.takeWanted() {
				s.startWriter(ctx, &writers, id)
			}
		case <-changed:
			s.notifyWriters()
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

// catchUp looks at all subscriptions: it removes what deleted ones left, and sees to it that all that
// has to be written is.
func (s *Service) catchUp(ctx context.Context, writers *sync.WaitGroup) {
	s.sweep(ctx)
	for _, b := range s.all() {
		if ctx.Err() != nil {
			return
		}
		if s.wants(ctx, b) {
			s.startWriter(ctx, writers, b.id)
		} else if !s.hasWriter(b.id) {
			s.retain(b, false)
		}
	}
}

// all gives the boxes there are.
func (s *Service) all() []*box {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.boxes))
}

// wants tells whether a writer has something to do: to write, or to forget a trouble with a place
// that is none any more. Where that cannot be told the writer finds out.
func (s *Service) wants(ctx context.Context, b *box) bool {
	counts, err := s.Counts(ctx, b.id)
	if err != nil || counts.Unwritten > 0 {
		return true
	}
	sub := s.cfg.Topics.Snapshot().Subscriptions[b.id]
	return sub != nil && !written(sub.DeadLetter) && (counts.Problem != "" || !counts.Since.IsZero())
}

// ring tells a subscription's writer of new letters, or Run that there has to be one. Where nobody
// runs the next who does finds them.
func (s *Service) ring(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.writers[id]; w != nil {
		ring(w.bell)
		return
	}
	s.wanted[id] = true
	ring(s.begin)
}

// takeWanted gives the subscriptions that want a writer.
func (s *Service) takeWanted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Collect(maps.Keys(s.wanted))
	clear(s.wanted)
	return ids
}

// notifyWriters has all writers look at their subscriptions again.
func (s *Service) notifyWriters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writers {
		ring(w.news)
	}
}

func (s *Service) hasWriter(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writers[id] != nil
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

// stopWriter lets one go that was told to stop: what it leaves is found by the next Run.
func (s *Service) stopWriter(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers[w.id] == w {
		delete(s.writers, w.id)
	}
}

// sweep removes what deleted subscriptions left. What fails is tried with the next change, or start.
//
// Boxes are listed before the subscriptions are: a box is made for a subscription that exists, so
// that one without is of a deleted one. The other way round it could be of one just made.
func (s *Service) sweep(ctx context.Context) {
	boxes := s.all()
	known := s.cfg.Topics.Snapshot().Subscriptions
	for _, b := range boxes {
		if known[b.id] != nil {
			continue
		}
		if err := b.remove(ctx, s.cfg.Engine); err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("dead letters of a deleted subscription are still there, the next change tries again", "subscription", b.id, "error", err)
			}
			continue
		}
		s.forget(b)
	}
}

func (s *Service) forget(b *box) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.boxes, b.id)
	delete(s.wanted, b.id)
}
