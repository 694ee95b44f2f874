package notify

import (
	"context"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// outbox is what waits to be sent, and the lanes that send it.
type outbox struct {
	*sender
	// node names this process in claims; a new one at every start.
	node  string
	slots slots
	paces *paces
	// ledgers are as last seen. A ledger in it is never changed.
	ledgers *mirror.Table[*ledger]

	mu    sync.Mutex
	lanes map[laneID]*lane // at work; guarded by mu
	start func(*lane)      // runs a lane; nil: none may begin; guarded by mu
}

// watchLedgers keeps up with the ledgers, whoever changes them, and has a lane at work for every
// receiver that something waits for. It returns when all of them have stopped.
func (s *outbox) watchLedgers(ctx context.Context) {
	var lanes sync.WaitGroup
	s.startLanes(func(l *lane) { lanes.Go(func() { l.run(ctx) }) })
	persist(ctx, s.cfg.Log, "notices cannot be watched", func() error { return s.ledgers.Run(ctx) })
	s.startLanes(nil)
	lanes.Wait()
}

// startLanes has lanes started from now on, also for what waits already; nil: no more.
func (s *outbox) startLanes(start func(*lane)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = start
	for _, there := range s.ledgers.Items() {
		s.startLanesLocked(there)
	}
}

// applied wakes the lanes that changed ledgers are for, and starts those that have something to do
// and are not at work.
func (s *outbox) applied(updates []mirror.Update[*ledger]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range updates {
		for id, lane := range s.lanes {
			if id.key != u.Key {
				continue
			}
			select {
			case lane.bell <- struct{}{}:
			default:
			}
		}
		if u.New.Exists() {
			s.startLanesLocked(u.New)
		}
	}
}

func (s *outbox) startLanesLocked(there mirror.Item[*ledger]) {
	for _, it := range there.Value.Items {
		id := laneID{there.Key, it.Target}
		if s.start == nil || s.lanes[id] != nil {
			continue
		}
		l := &lane{outbox: s, id: id, bell: make(chan struct{}, 1)}
		s.lanes[id] = l
		s.start(l)
	}
}

// next gives what a lane is to send next. Where there is nothing it lets the lane go in the same
// step: whatever comes later finds none at work, and starts another.
func (s *outbox) next(l *lane) (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.ledgers.Get(l.id.key); ok {
		if it, more := there.Value.head(l.id.target); more {
			return it, true
		}
	}
	delete(s.lanes, l.id)
	return item{}, false
}

// endLane lets a lane go that was stopped.
func (s *outbox) endLane(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lanes, l.id)
}
