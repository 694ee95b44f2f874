package notify

import (
	"context"
	"maps"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// watchLedgers keeps up with the ledgers, whoever changes them, and has a lane at work for every receiver that something waits
// for. It returns when all of them have stopped.
func (s *Service) watchLedgers(ctx context.Context) {
	var lanes sync.WaitGroup
	defer lanes.Wait()
	s.persist(ctx, "notices cannot be watched", func() error { return s.followLedgers(ctx, &lanes) })
}

// followLedgers is one watch.
func (s *Service) followLedgers(ctx context.Context, lanes *sync.WaitGroup) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.cfg.Meta.Watch(watching, ledgerPrefix)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		changes, err := w.Next()
		if err != nil {
			return err
		}
		if first {
			s.forgetOthers(changes)
		}
		for _, c := range changes {
			if c.Deleted {
				s.forget(c.Key, c.Revision)
				continue
			}
			s.learn(c.Key, entry{s.read(c.Key, c.Value), c.Revision})
			s.startLanes(ctx, lanes, c.Key)
		}
	}
}

// learn takes in a ledger as it is stored, unless a newer one is known, and wakes the lanes that it is for.
func (s *Service) learn(key string, e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.revision <= s.known[key].revision {
		return
	}
	s.known[key] = e
	s.ringLocked(key)
}

// forget lets a ledger go that was deleted, unless one of that key was stored since.
func (s *Service) forget(key string, deleted meta.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if deleted > s.known[key].revision {
		delete(s.known, key)
		s.ringLocked(key)
	}
}

func (s *Service) ringLocked(key string) {
	for id, lane := range s.lanes {
		if id.key == key {
			lane.ring()
		}
	}
}

// forgetOthers forgets what is not in the present state: it went while nobody watched. What was stored since is told once more.
func (s *Service) forgetOthers(present []meta.Change) {
	there := map[string]bool{}
	for _, c := range present {
		there[c.Key] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(key string, _ entry) bool { return !there[key] })
}

// ledgers gives all that are known and can be read.
func (s *Service) ledgers() map[string]entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.known)
	maps.DeleteFunc(all, func(_ string, e entry) bool { return e.Function == "" })
	return all
}

// startLanes starts those that have something to do and are not at work.
func (s *Service) startLanes(ctx context.Context, all *sync.WaitGroup, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.known[key].Items {
		id := laneID{key, it.Target}
		if s.lanes[id] != nil {
			continue
		}
		l := &lane{service: s, id: id, bell: make(chan struct{}, 1)}
		s.lanes[id] = l
		all.Go(func() { l.run(ctx) })
	}
}

// next gives what a lane is to send next. Where there is nothing it lets the lane go in the same step: whatever comes later finds none at
// work, and starts another.
func (s *Service) next(l *lane) (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.known[l.id.key]; ok {
		if it, more := e.head(l.id.target); more {
			return it, true
		}
	}
	delete(s.lanes, l.id)
	return item{}, false
}

// endLane lets a lane go that was stopped.
func (s *Service) endLane(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lanes, l.id)
}
