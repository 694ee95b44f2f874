package functions

import (
	"context"
	"sync"
	"sync/atomic"
)

// solo lets ordinary calls of a host run side by side, and wary ones alone: those for events that
// instances have died of, so that the next death tells whose doing it is. A wary call waits for the
// calls under way, and holds back all that would begin.
type solo struct {
	sharing atomic.Int64  // ordinary calls under way
	wary    atomic.Int64  // wary calls under way or waiting
	turn    chan struct{} // a token: one wary call at a time
	calm    bell          // wary has come to zero
	quiet   bell          // sharing has come to zero while somebody is wary
}

func newSolo() *solo { return &solo{turn: make(chan struct{}, 1)} }

// share begins an ordinary call; end is to be called after it. While nobody is wary it costs two
// atomic operations.
func (s *solo) share(ctx context.Context, leaving <-chan struct{}) error {
	for !s.join() {
		calm := s.calm.next()
		if s.wary.Load() == 0 {
			continue
		}
		if err := wait(ctx, leaving, calm); err != nil {
			return err
		}
	}
	return nil
}

func (s *solo) join() bool {
	s.sharing.Add(1)
	if s.wary.Load() == 0 {
		return true
	}
	s.end()
	return false
}

// end ends an ordinary call.
func (s *solo) end() {
	if s.sharing.Add(-1) == 0 && s.wary.Load() > 0 {
		s.quiet.ring()
	}
}

// alone begins a wary call; the function it gives ends it.
func (s *solo) alone(ctx context.Context, leaving <-chan struct{}) (func(), error) {
	s.wary.Add(1)
	if err := acquire(ctx, leaving, s.turn); err != nil {
		s.relax()
		return nil, err
	}
	end := func() {
		<-s.turn
		s.relax()
	}
	for {
		quiet := s.quiet.next()
		if s.sharing.Load() == 0 {
			return end, nil
		}
		if err := wait(ctx, leaving, quiet); err != nil {
			end()
			return nil, err
		}
	}
}

// relax is one wary call less.
func (s *solo) relax() {
	if s.wary.Add(-1) == 0 {
		s.calm.ring()
	}
}

// bell wakes all who wait for its next ring. The zero bell is ready.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // guarded by mu; nil: nobody waits
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
