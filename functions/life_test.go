package functions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

var (
	errDead = errors.New("this instance is dead")
	errDown = errors.New("the store is down")
)

// life is one host's: everything that it does to the world goes through it, so that it can be ended
// between any two things, before or after one is done. What a dead one tries comes to nothing.
type life struct {
	mu    sync.Mutex
	dead  bool
	steps []string // what was done; guarded by mu
	die   int      // it dies at this step, from 1; 0: not by itself
	after bool     // after it was done, without an answer
	only  func(step string) bool
	onDie func()
	deny  func(step string) error // nil, or what is wrong with the store
}

func (l *life) alive() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	return nil
}

func (l *life) kill() {
	l.mu.Lock()
	was := l.dead
	l.dead = true
	l.mu.Unlock()
	if !was && l.onDie != nil {
		l.onDie()
	}
}

// do does a step, unless that is the one it dies at.
func (l *life) do(step string, do func() error) error {
	before, after, err := l.begin(step)
	if err != nil {
		return err
	}
	if before {
		l.kill()
		return errDead
	}
	err = do()
	if after {
		l.kill()
		return errDead
	}
	return err
}

func (l *life) begin(step string) (before, after bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false, false, errDead
	}
	if l.deny != nil {
		if err := l.deny(step); err != nil {
			return false, false, err
		}
	}
	if l.only != nil && !l.only(step) {
		return false, false, nil
	}
	l.steps = append(l.steps, step)
	mine := l.die > 0 && len(l.steps) == l.die
	return mine && !l.after, mine && l.after, nil
}

func (l *life) done() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

func (l *life) setDeny(deny func(step string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deny = deny
}

// store is a host's view of the store. It can be watched only while its host lives.
type store struct {
	*memory.Store
	life *life
}

func (s *store) Leases(ctx context.Context, g processor.Group) (list []processor.Lease, err error) {
	err = s.life.do("leases", func() error { list, err = s.Store.Leases(ctx, g); return err })
	return list, err
}

func (s *store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) (list []processor.Lease, err error) {
	err = s.life.do("claim", func() error { list, err = s.Store.Claim(ctx, g, leases); return err })
	return list, err
}

func (s *store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (c processor.Checkpoint, err error) {
	err = s.life.do("begin", func() error { c, err = s.Store.Begin(ctx, g, l); return err })
	return c, err
}

func (s *store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (got processor.Checkpoint, err error) {
	err = s.life.do("save", func() error { got, err = s.Store.Save(ctx, g, l, c); return err })
	return got, err
}

func (s *store) Entries(ctx context.Context, g processor.Group, prefix string) (list []processor.Entry, err error) {
	err = s.life.do("entries "+prefix, func() error { list, err = s.Store.Entries(ctx, g, prefix); return err })
	return list, err
}

func (s *store) Put(ctx context.Context, g processor.Group, f processor.Entry) (got processor.Entry, err error) {
	err = s.life.do("put "+f.Key, func() error { got, err = s.Store.Put(ctx, g, f); return err })
	return got, err
}

func (s *store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	return s.life.do("remove "+f.Key, func() error { return s.Store.Remove(ctx, g, f) })
}

// ofTheWork are the steps between which it matters to die: those that change what the next owner
// finds.
func ofTheWork(step string) bool {
	return strings.HasPrefix(step, "put "+workPrefix) || step == "save" || step == "send" || strings.HasPrefix(step, "put circuit/")
}
