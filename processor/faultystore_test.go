package processor_test

import (
	"context"
	"errors"
	"sync"

	"github.com/eventyard/eventyard/processor"
)

var errDown = errors.New("the store is down")

// faulty is one instance's view of the store: it can be down, hang, or lose answers.
type faulty struct {
	processor.Store
	mu   sync.Mutex
	down bool
	why  error // what a call that is not made answers
	// before, where it is set, is called before each call.
	before func(op string)
	// lose, by operation, is how many of the next writes are made without an answer; deny how
	// many calls are not made at all.
	lose, deny map[string]int
	calls      map[string]int
}

func newFaulty(s processor.Store) *faulty {
	return &faulty{Store: s, why: errDown, lose: map[string]int{}, deny: map[string]int{}, calls: map[string]int{}}
}

func (f *faulty) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *faulty) set(m map[string]int, op string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m[op] = n
}

// enter tells whether a call is made, and whether its answer arrives.
func (f *faulty) enter(op string) (deny, lose bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	if f.down || f.deny[op] > 0 {
		f.deny[op]--
		return true, false
	}
	if f.lose[op] > 0 {
		f.lose[op]--
		return false, true
	}
	return false, false
}

func call[T any](f *faulty, op string, fn func() (T, error)) (T, error) {
	var none T
	if f.before != nil {
		f.before(op)
	}
	deny, lose := f.enter(op)
	if deny {
		return none, f.why
	}
	v, err := fn()
	if lose && err == nil {
		return none, errDown
	}
	return v, err
}

func (f *faulty) KeepsPresence() bool {
	renewing, ok := f.Store.(processor.PresenceStore)
	return ok && renewing.KeepsPresence()
}

func (f *faulty) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	return call(f, "leases", func() ([]processor.Lease, error) { return f.Store.Leases(ctx, g) })
}

func (f *faulty) Claim(ctx context.Context, g processor.Group, l []processor.Lease) ([]processor.Lease, error) {
	return call(f, "claim", func() ([]processor.Lease, error) { return f.Store.Claim(ctx, g, l) })
}

func (f *faulty) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	return call(f, "checkpoints", func() ([]processor.Checkpoint, error) { return f.Store.Checkpoints(ctx, g) })
}

func (f *faulty) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	return call(f, "begin", func() (processor.Checkpoint, error) { return f.Store.Begin(ctx, g, l) })
}

func (f *faulty) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	return call(f, "save", func() (processor.Checkpoint, error) { return f.Store.Save(ctx, g, l, c) })
}

func (f *faulty) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	return call(f, "entries", func() ([]processor.Entry, error) { return f.Store.Entries(ctx, g, prefix) })
}

func (f *faulty) Put(ctx context.Context, g processor.Group, entry processor.Entry) (processor.Entry, error) {
	return call(f, "put", func() (processor.Entry, error) { return f.Store.Put(ctx, g, entry) })
}

func (f *faulty) Remove(ctx context.Context, g processor.Group, entry processor.Entry) error {
	_, err := call(f, "remove", func() (struct{}, error) { return struct{}{}, f.Store.Remove(ctx, g, entry) })
	return err
}

func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}
