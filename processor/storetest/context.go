package storetest

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/processor"
)

var contextTests = []test{
	{"a call whose context has ended is an error and never an empty answer", endedContext},
	{"a call whose context has ended does not tell of a conflict", endedIsNoConflict},
}

// calls are one of each, none of which is in conflict with what prepared wrote.
func (f *fixture) calls() map[string]func(ctx context.Context) error {
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	c.Sequence = 1
	c = f.save(l, c)
	entry := f.put(processor.Entry{Key: "presence/a", Value: []byte("x")})
	s, g := f.store, f.group
	return map[string]func(ctx context.Context) error{
		"Leases":      func(ctx context.Context) error { _, err := s.Leases(ctx, g); return err },
		"Claim":       func(ctx context.Context) error { _, err := s.Claim(ctx, g, []processor.Lease{l}); return err },
		"Checkpoints": func(ctx context.Context) error { _, err := s.Checkpoints(ctx, g); return err },
		"Begin":       func(ctx context.Context) error { _, err := s.Begin(ctx, g, l); return err },
		"Save":        func(ctx context.Context) error { _, err := s.Save(ctx, g, l, c); return err },
		"Force":       func(ctx context.Context) error { _, err := s.Force(ctx, g, c); return err },
		"Entries":     func(ctx context.Context) error { _, err := s.Entries(ctx, g, ""); return err },
		"Put":         func(ctx context.Context) error { _, err := s.Put(ctx, g, entry); return err },
		"Remove":      func(ctx context.Context) error { return s.Remove(ctx, g, entry) },
	}
}

func endedContext(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	calls := f.calls()
	cancel()
	for name, call := range calls {
		if call(ctx) == nil {
			f.Errorf("%s went on without an error", name)
		}
	}
}

func endedIsNoConflict(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	calls := f.calls()
	cancel()
	for name, call := range calls {
		if err := call(ctx); errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrFenced) {
			f.Errorf("%s: %v", name, err)
		}
	}
}
