package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "github.com/eventyard/eventyard/internal/api/v1"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage"
)

// How often it is tried whether the storage takes writes, how long that may take, how soon it is tried
// again after a failure, and how long none must have succeeded until clients are better served by another
// node. A lost leader is replaced within 4 to 9 seconds: together with one try before it and one that
// begins too early that is 19, and does not count.
const (
	tryEvery        = 5 * time.Second
	tryTime         = 4 * time.Second
	tryAgain        = time.Second
	unwritableAfter = 20 * time.Second
)

// ready says why clients are better served by another node. It asks nobody: what it needs to know is
// found out every few seconds, by the entry of this node and by trial writes.
func (y *yard) ready() error {
	if y.cfg.Peer.Bundle != nil {
		if why := y.storage.Ready(); errors.Is(why, storage.ErrStopped) {
			return &v1.NotReady{Text: "the server inside has stopped storing, as its disk was full or failed", Cause: why}
		}
	}
	if y.nodes.MayAct() {
		return y.trial.check(time.Now())
	}
	since := y.nodes.Confirmed().UTC().Format(time.RFC3339)
	if y.cfg.Peer.Bundle == nil {
		return &v1.NotReady{Text: fmt.Sprintf("the NATS servers have confirmed nothing since %s: most of them have to run and reach each other, and this node has to reach one of those", since)}
	}
	return &v1.NotReady{
		Text:  fmt.Sprintf("the peers have confirmed nothing since %s: most of them have to run and reach each other, and this one has to reach those", since),
		Cause: y.storage.Ready(),
	}
}

// watchStorage ends with an error when this process has to be started again for the server inside to store:
// whoever runs it does that.
func (y *yard) watchStorage(ctx context.Context) error {
	if y.storage.Watch == nil {
		<-ctx.Done()
		return nil
	}
	return y.storage.Watch(ctx)
}

// trial finds out whether storage that several nodes share takes writes: each stream has a majority of
// its own, and the one that presence is written to does not tell of the others.
type trial struct {
	write func(context.Context) error // nil: there is nothing to find out

	mu     sync.Mutex
	last   time.Time // when a write succeeded; guarded by mu
	failed error     // why none has since; guarded by mu
}

func newTrial(write func(context.Context) error) *trial {
	return &trial{write: write, last: time.Now()}
}

// run tries until ctx ends.
func (t *trial) run(ctx context.Context) error {
	if t.write == nil {
		<-ctx.Done()
		return nil
	}
	for {
		one, cancel := context.WithTimeout(ctx, tryTime)
		err := t.write(one)
		cancel()
		t.note(err, time.Now())
		pause := tryEvery
		if err != nil {
			pause = tryAgain
		}
		if sleep.About(ctx, pause) != nil {
			return nil
		}
	}
}

func (t *trial) note(err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed = err; err == nil {
		t.last = now
	}
}

// check says why nothing can be written.
func (t *trial) check(now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil || now.Sub(t.last) < unwritableAfter {
		return nil
	}
	return &v1.NotReady{
		Text: fmt.Sprintf("the NATS servers have stored nothing since %s: most of those that keep a stream have to run and reach each other",
			t.last.UTC().Format(time.RFC3339)),
		Cause: t.failed,
	}
}
