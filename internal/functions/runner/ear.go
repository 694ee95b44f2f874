package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/processor"
)

// repeatAfter is how soon the same error is worth another warning, and maxReported how many errors
// are remembered.
const (
	repeatAfter = time.Minute
	maxReported = 1000
)

// ear logs the errors that a host carries on from: the same one is a warning once in a while.
type ear struct {
	log *slog.Logger
	// lost is called with what a host cannot carry on from by itself, though it tries: its hub or
	// group is gone, or the log was closed.
	lost func(error)
	// targetLost is called when the hub for poison is gone.
	targetLost func()

	mu       sync.Mutex
	reported map[string]time.Time // by partition and what was being done; guarded by mu
}

func (e *ear) heard(err error) {
	where := &functions.Error{Err: err}
	_ = errors.As(err, &where)
	level, text := slog.LevelWarn, "a function continues after an error"
	if where.Step == functions.StepCall || !e.isNews(where.Partition+" "+where.Doing) {
		level = slog.LevelDebug // one failed call is a counter
	}
	if errors.Is(err, processor.ErrMoved) {
		level, text = slog.LevelInfo, "a function continues from the moved checkpoint"
	}
	e.log.Log(context.Background(), level, text,
		"function", where.Function, "partition", where.Partition, "doing", where.Doing, "error", where.Err)
	_, missing := errors.AsType[*broker.NotFoundError](err)
	switch {
	case where.Step == functions.StepPutAway:
		if errors.Is(err, hub.ErrNotFound) {
			e.targetLost()
		}
	case missing || errors.Is(err, hub.ErrClosed):
		e.lost(where.Err)
	}
}

func (e *ear) isNews(what string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if at, reported := e.reported[what]; reported && now.Sub(at) < repeatAfter {
		return false
	}
	if e.reported == nil || len(e.reported) >= maxReported {
		e.reported = map[string]time.Time{}
	}
	e.reported[what] = now
	return true
}
