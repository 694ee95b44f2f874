package runner

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// retold is how soon the same trouble is worth another line, and maxTold how much of it is remembered.
const (
	retold      = time.Minute
	maxReported = 1000
)

// ear hears what a host carries on from, and logs it: the same trouble is a warning once in a while.
type ear struct {
	log *slog.Logger
	// lost has room for one: that from which a host cannot carry on by itself, though it tries. Its client was closed, or its hub or group is gone.
	lost chan error
	// placeless has room for one: the hub for poison is gone.
	placeless chan struct{}

	mu       sync.Mutex
	reported map[string]time.Time // by partition and what was being done; guarded by mu
}

func newEar(log *slog.Logger) *ear {
	return &ear{log: log, lost: make(chan error, 1), placeless: make(chan struct{}, 1), reported: map[string]time.Time{}}
}

func (e *ear) heard(err error) {
	function, partition, doing := "", "", ""
	if where := (*functions.Error)(nil); errors.As(err, &where) {
		function, partition, doing, err = where.Function, where.Partition, where.Doing, where.Err
	}
	level := slog.LevelWarn
	if strings.HasPrefix(doing, "call ") || !e.isNews(partition+" "+doing) {
		level = slog.LevelDebug // one failed call is a counter
	}
	e.log.Log(context.Background(), level, "a function goes on after an error", "function", function, "partition", partition, "doing", doing, "error", err)
	switch missing := (*broker.NotFoundError)(nil); {
	case errors.Is(err, hub.ErrClosed), errors.As(err, &missing):
		offer(e.lost, err)
	case errors.Is(err, hub.ErrNotFound) && strings.HasPrefix(doing, "put "):
		offer(e.placeless, struct{}{})
	}
}

func offer[T any](to chan<- T, what T) {
	select {
	case to <- what:
	default: // there is one already
	}
}

func (e *ear) isNews(what string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if at, reported := e.reported[what]; reported && now.Sub(at) < retold {
		return false
	}
	if len(e.reported) >= maxReported {
		clear(e.reported)
	}
	e.reported[what] = now
	return true
}
