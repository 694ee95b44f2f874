package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// followPause is about how long to wait before the groups are followed again after that failed.
const followPause = 5 * time.Second

// Run runs all functions, follows changes of definitions (this node's and others'), until ctx ends; then it stops them in good order.
func (k *Registry) Run(ctx context.Context) error {
	if err := k.begin(); err != nil {
		return err
	}
	defer k.end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	var err error
	parts.Go(func() {
		err = k.definitions.Run(ctx)
		stop()
	})
	ready := make(chan struct{})
	isReady := sync.OnceFunc(func() { close(ready) })
	parts.Go(func() {
		for ctx.Err() == nil {
			if err := k.cfg.Groups.Follow(ctx, isReady); err != nil {
				k.log.Warn("changes of groups are not reported to functions, and that is tried again", "error", err)
				isReady()
				mirror.Pause(ctx, followPause)
			}
		}
	})
	select {
	case <-ready: // hosts that start earlier would each have to watch by themselves
	case <-ctx.Done():
	}
	k.supervise(ctx, &parts)
	parts.Wait()
	return err
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
	for _, e := range k.definitions.Items() {
		if k.jobs[e.Key] == nil {
			j := newJob(e.Key)
			k.jobs[e.Key] = j
			made = append(made, j)
		}
	}
	return made
}
