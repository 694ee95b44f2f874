package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// providePause is how long Provider.Run waits after a failure.
const providePause = time.Second

// Provider has an engine provide logs, for who learns of them where it must not wait for storage:
// Add notes what a log is to be, and whoever may wait has it done. What fails stays noted, and Run
// tries again. All methods may be called by many goroutines at once.
type Provider struct {
	engine Engine
	wake   chan struct{}
	// turn has room for the one who calls the engine: so the calls of a log are in the order of its
	// Adds.
	turn chan struct{}

	mu  sync.Mutex
	due map[string]Shape // guarded by mu: what the engine has not been asked for yet, by log
}

// NewProvider makes one that has nothing to do.
func NewProvider(engine Engine) *Provider {
	return &Provider{engine: engine, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), due: make(map[string]Shape)}
}

// Add notes that a log is to be provided, unless it is removed before. It does not wait.
func (p *Provider) Add(log string, shape Shape) {
	p.mu.Lock()
	p.due[log] = shape
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it is awake
	}
}

// Provide has a log provided as the newest Add says, unless that was done. Errors are those of
// Engine.Provide.
func (p *Provider) Provide(ctx context.Context, log string) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.turn }()
	for {
		p.mu.Lock()
		shape, due := p.due[log]
		p.mu.Unlock()
		if !due {
			return nil
		}
		err := p.engine.Provide(ctx, log, shape)
		if err != nil && !errors.Is(err, ErrRemoved) {
			return fmt.Errorf("provide log %s: %w", log, err)
		}
		p.mu.Lock()
		if p.due[log] == shape { // else it is to be another by now
			delete(p.due, log)
		}
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// ProvideAll has all logs provided that are still to be, and gives the first error where some cannot
// be. One that was removed meanwhile is none.
func (p *Provider) ProvideAll(ctx context.Context) (first error) {
	p.mu.Lock()
	logs := make([]string, 0, len(p.due))
	for log := range p.due {
		logs = append(logs, log)
	}
	p.mu.Unlock()
	slices.Sort(logs)
	for _, log := range logs {
		if err := p.Provide(ctx, log); err != nil && !errors.Is(err, ErrRemoved) && first == nil {
			first = err
		}
	}
	return first
}

// Run provides what is added, and again what failed, until ctx ends. report hears of the first of
// several failures in a row.
func (p *Provider) Run(ctx context.Context, report func(error)) {
	failing := false
	for {
		err := p.ProvideAll(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			report(err)
		}
		if failing = err != nil; failing {
			if sleep.About(ctx, providePause) != nil {
				return
			}
			continue
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return
		}
	}
}
