package notify

import (
	"context"
	"sync"
)

// How many are sent at once: when a thing fails that many functions need, many circuits open in the same second.
const (
	mailSlots    = 4 // all mail goes to one server
	webhookSlots = 2 // to one target
	eventSlots   = 8
)

// slots bound what is sent at once, for each receiver on its own, so that one that hangs holds up nobody else. The zero value is ready.
type slots struct {
	mu   sync.Mutex
	used map[string]*slot // guarded by mu: those that somebody has or waits for
}

// slot is one receiver's.
type slot struct {
	taken chan struct{}
	users int // guarded by slots.mu
}

// take waits for a slot; false: ctx ended before.
func (s *slots) take(ctx context.Context, it item) (release func(), ok bool) {
	name, size := slotOf(it)
	one := s.use(name, size)
	select {
	case one.taken <- struct{}{}:
		return func() {
			<-one.taken
			s.leave(name)
		}, true
	case <-ctx.Done():
		s.leave(name)
		return nil, false
	}
}

func slotOf(it item) (name string, size int) {
	switch it.medium() {
	case byMail:
		return string(byMail), mailSlots
	case byWebhook:
		return it.Target, webhookSlots
	}
	return string(byEvent), eventSlots
}

func (s *slots) use(name string, size int) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[string]*slot{}
	}
	if s.used[name] == nil {
		s.used[name] = &slot{taken: make(chan struct{}, size)}
	}
	s.used[name].users++
	return s.used[name]
}

func (s *slots) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[name].users--; s.used[name].users == 0 {
		delete(s.used, name)
	}
}
