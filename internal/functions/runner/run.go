package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// lostPause is how long to wait before a watch that was lost begins anew.
const lostPause = 250 * time.Millisecond

// Run runs all functions, follows changes of definitions (this node's and others'), until ctx ends; then it stops them in good order.
func (k *Registry) Run(ctx context.Context) error {
	if err := k.begin(); err != nil {
		return err
	}
	defer k.end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := k.follow(ctx); err != nil {
			stop(err)
		}
	})
	k.supervise(ctx, &parts)
	parts.Wait()
	if err := context.Cause(ctx); errors.Is(err, errFollow) {
		return err
	}
	return nil
}

func (k *Registry) begin() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running {
		return errors.New("run functions: they run already")
	}
	k.running = true
	k.report()
	return nil
}

func (k *Registry) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = false
}

// supervise sees to it that each definition has a job, and each host a definition, until ctx ends.
func (k *Registry) supervise(ctx context.Context, parts *sync.WaitGroup) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
			for _, j := range k.missing() {
				parts.Go(func() { k.work(ctx, j) })
			}
			for _, d := range k.tend() {
				parts.Go(func() { _ = k.provide(ctx, d) }) // the host goes on reporting where that does not help
			}
		}
	}
}

// missing makes jobs for definitions that have none.
func (k *Registry) missing() (made []*job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, e := range k.known {
		if !e.gone && k.jobs[key] == nil {
			j := newJob(key)
			k.jobs[key] = j
			made = append(made, j)
		}
	}
	return made
}

var errFollow = errors.New("watch functions")

// follow watches the definitions until ctx ends.
func (k *Registry) follow(ctx context.Context) error {
	for {
		err := k.watch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, meta.ErrWatchLost):
			return fmt.Errorf("%w: %w", errFollow, err)
		}
		k.log.Warn("watch of the functions was lost, beginning anew", "error", err)
		if !pause(ctx, lostPause) {
			return nil
		}
	}
}

// watch takes over the present state and then every change, until it fails.
func (k *Registry) watch(ctx context.Context) error {
	watch, err := k.cfg.Meta.Watch(ctx, keyPrefix)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return err
		}
		for _, c := range changes {
			k.apply(k.reported(c))
		}
		if first {
			if err := k.dropMissing(ctx, changes); err != nil {
				return err
			}
		}
	}
}

func (k *Registry) reported(c meta.Change) *entry {
	if !c.Deleted {
		return decode(c.Entry)
	}
	e := &entry{key: c.Key, revision: c.Revision, gone: true}
	e.Name = strings.TrimPrefix(c.Key, keyPrefix)
	return e
}

// dropMissing forgets what was deleted while nobody watched: the watch begins with what exists and says nothing of what no longer
// does. What we made after the watch's first look is missing there too, so the store is asked about each.
func (k *Registry) dropMissing(ctx context.Context, present []meta.Change) error {
	there := make(map[string]bool, len(present))
	for _, c := range present {
		there[c.Key] = true
	}
	k.mu.Lock()
	var missing []*entry
	for key, e := range k.known {
		if !e.gone && !there[key] {
			missing = append(missing, e)
		}
	}
	k.mu.Unlock()
	for _, e := range missing {
		_, err := k.cfg.Meta.Get(ctx, e.key)
		switch {
		case errors.Is(err, meta.ErrNotFound):
			k.apply(&entry{stored: e.stored, key: e.key, revision: e.revision, gone: true})
		case err != nil:
			return fmt.Errorf("look for %s: %w", e.key, err)
		}
	}
	return nil
}
