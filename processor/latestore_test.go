package processor_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// late is one instance's way to the store: calls take a while to get there and back, and what is on
// its way goes on when the caller has given up. So a write can be made long after its answer was
// waited for, and what was read can be old when it arrives.
type late struct {
	processor.Store
	older bool // the instance is of a version that knows no leases which hang on a presence

	mu   sync.Mutex // guards what follows
	rand *rand.Rand
	// far is the longest way; lost is how many of ten answers never come. They change as the test
	// goes on.
	far  time.Duration
	lost int
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func (s *late) set(far time.Duration, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.far, s.lost = far, lost
}

// way draws how long a call takes to get there and back; back below zero: never.
func (s *late) way() (there, back time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there, back = time.Duration(s.rand.Int64N(int64(s.far))), time.Duration(s.rand.Int64N(int64(s.far)))
	if s.rand.IntN(10) < s.lost {
		back = -1
	}
	return there, back
}

func overWay[T any](ctx context.Context, s *late, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	there, back := s.way()
	go func() {
		time.Sleep(there)
		v, err := call(context.WithoutCancel(ctx))
		if back >= 0 {
			time.Sleep(back)
			answers <- answer{v, err}
		}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (s *late) KeepsPresence() bool { return !s.older }

func (s *late) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	return overWay(ctx, s, func(ctx context.Context) ([]processor.Lease, error) {
		leases, err := s.Store.Leases(ctx, g)
		for i := range leases {
			if s.older {
				leases[i].Presence = ""
			}
		}
		return leases, err
	})
}

func (s *late) Claim(ctx context.Context, g processor.Group, l []processor.Lease) ([]processor.Lease, error) {
	return overWay(ctx, s, func(ctx context.Context) ([]processor.Lease, error) { return s.Store.Claim(ctx, g, l) })
}

func (s *late) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	return overWay(ctx, s, func(ctx context.Context) (processor.Checkpoint, error) { return s.Store.Begin(ctx, g, l) })
}

func (s *late) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	return overWay(ctx, s, func(ctx context.Context) ([]processor.Entry, error) { return s.Store.Entries(ctx, g, prefix) })
}

func (s *late) Put(ctx context.Context, g processor.Group, e processor.Entry) (processor.Entry, error) {
	if s.older && strings.HasPrefix(e.Key, "presence/") {
		e.Value = withoutLife(e.Value)
	}
	return overWay(ctx, s, func(ctx context.Context) (processor.Entry, error) { return s.Store.Put(ctx, g, e) })
}

func (s *late) Remove(ctx context.Context, g processor.Group, e processor.Entry) error {
	_, err := overWay(ctx, s, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Store.Remove(ctx, g, e) })
	return err
}

// withoutLife is a presence as older versions write it.
func withoutLife(value []byte) []byte {
	said := map[string]any{}
	_ = json.Unmarshal(value, &said)
	delete(said, "life")
	value, _ = json.Marshal(said)
	return value
}
