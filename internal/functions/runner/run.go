package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/functions/local"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// supervisor runs the functions whose definitions the catalog has.
type supervisor struct {
	*catalog
	id      string // Config.Instance, or one of its own
	hubs    *local.Namespace
	changed chan struct{} // has room for one: a job or its host may have to be seen to
	calls   *callMemory

	mu      sync.Mutex
	jobs    map[string]*job // by key; guarded by mu
	running bool            // guarded by mu
}

// followPause is about how long to wait before the groups are followed again after that failed.
const followPause = 5 * time.Second

// Run runs all functions, follows changes of definitions (this node's and others'), until ctx ends;
// then it stops them in good order.
func (k *supervisor) Run(ctx context.Context) error {
	k.mu.Lock()
	if k.running {
		k.mu.Unlock()
		return errors.New("run functions: they run already")
	}
	k.running = true
	k.report()
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.running = false
	}()
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
				sleep.About(ctx, followPause)
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

// supervise sees to it that each definition has a job, and each host a definition, until ctx ends.
func (k *supervisor) supervise(ctx context.Context, parts *sync.WaitGroup) {
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
func (k *supervisor) missing() (made []*job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.definitions.Items() {
		if k.jobs[e.Key] == nil {
			j := &job{key: e.Key, poke: make(chan struct{}, 1), done: make(chan struct{})}
			k.jobs[e.Key] = j
			made = append(made, j)
		}
	}
	return made
}

// applied wakes who runs the functions whose definitions have changed.
func (k *supervisor) applied(updates []mirror.Update[*entry]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range updates {
		if e := u.New.Value; e != nil && e.problem != nil {
			k.log.Error("the definition of a function cannot be read and is left alone", "key", e.key, "error", e.problem)
		}
		if j := k.jobs[u.Key]; j != nil {
			select {
			case j.poke <- struct{}{}:
			default:
			}
		}
	}
	k.report()
}

// report wakes who runs the functions. The caller need not hold mu.
func (k *supervisor) report() {
	select {
	case k.changed <- struct{}{}:
	default: // it has yet to hear of an earlier one and will look at both
	}
}

// stopped waits until no host of this node runs the function any more.
func (k *supervisor) stopped(ctx context.Context, e *entry) error {
	k.mu.Lock()
	j, known := k.jobs[e.key], k.known(e.key)
	next := known != nil && known.revision > e.revision // the job is, or will be, the next function's
	k.mu.Unlock()
	if j == nil || next {
		return nil
	}
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it is stopping, and will be gone when it has: %w", context.Cause(ctx))
	}
}
