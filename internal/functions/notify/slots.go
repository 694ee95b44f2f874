package notify

import (
	"context"
	"sync"
)

// How many are sent at once: when a thing fails that many functions need, many circuits open in the
// same second.
const (
	mailSlots    = 4 // all mail goes to one server
	webhookSlots = 2 // to one target
	eventSlots   = 8
)

// slots bound what is sent at once, for each receiver on its own, so that one that hangs holds up
// nobody else. The zero value is ready.
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
	name, size := string(byEvent), eventSlots
	switch it.medium() {
	case byMail:
		name, size = string(byMail), mailSlots
	case byWebhook:
		name, size = it.Target, webhookSlots
	}
	s.mu.Lock()
	if s.used == nil {
		s.used = map[string]*slot{}
	}
	one := s.used[name]
	if one == nil {
		one = &slot{taken: make(chan struct{}, size)}
		s.used[name] = one
	}
	one.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(s.used, name)
		}
	}
	select {
	case one.taken <- struct{}{}:
		return func() { <-one.taken; leave() }, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}
