package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// storedRecently is for how long one message that was stored shows that messages can be.
const storedRecently = 10 * time.Second

// outcome is what became of the messages of this node, whatever their streams. The zero value works, and
// all methods may be called by many goroutines at once.
type outcome struct {
	stored atomic.Int64           // when one was stored, in nanoseconds; 0: none
	failed atomic.Pointer[string] // the stream of one that the storage did not take; nil: it answers again
}

func (o *outcome) note(stream string, err error) {
	switch {
	case err == nil:
		o.stored.Store(time.Now().UnixNano())
	case errors.Is(err, streams.ErrUnavailable) || errors.Is(err, streams.ErrUncertain):
		o.failed.Store(&stream)
	}
}

// Writable says why nothing can be appended: a message was not taken, none of any stream was stored for
// 10 s, and nobody answers for that stream now, nor for some others. One stream without a majority is
// no reason to send clients elsewhere. Only where something was not taken it asks the storage.
func (e *Engine) Writable(ctx context.Context) error {
	failed := e.outcome.failed.Load()
	if failed == nil || time.Since(time.Unix(0, e.outcome.stored.Load())) < storedRecently {
		return nil
	}
	var asking sync.WaitGroup
	var answered atomic.Int64
	for _, stream := range e.some(*failed) {
		asking.Go(func() {
			if _, err := e.cfg.Storage.State(ctx, stream); !errors.Is(err, streams.ErrUnavailable) && ctx.Err() == nil {
				answered.Add(1)
				if stream == *failed {
					e.outcome.failed.CompareAndSwap(failed, nil)
				}
			}
		})
	}
	if asking.Wait(); answered.Load() == 0 {
		return fmt.Errorf("%w: nobody answers for stream %s", eventlog.ErrUnavailable, *failed)
	}
	return nil
}

// askedAtMost is of how many streams it is found out whether somebody answers.
const askedAtMost = 4

// some gives a stream and some others that are used here.
func (e *Engine) some(stream string) []string {
	names := []string{stream}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.streams { // in no order
		if name != stream && len(names) < askedAtMost {
			names = append(names, name)
		}
	}
	return names
}
