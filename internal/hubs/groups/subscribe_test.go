package groups

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// losing is a store whose watches can be ended.
type losing struct {
	*metatest.Memory
	mu   sync.Mutex
	lose func(error) // guarded by mu: ends the newest watch
}

func (l *losing) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	l.lose = func(err error) { cancel(err) }
	l.mu.Unlock()
	w, err := l.Memory.Watch(ctx, prefix)
	return losingWatch{w, ctx}, err
}

type losingWatch struct {
	meta.Watcher
	ctx context.Context
}

func (w losingWatch) Next() ([]meta.Change, error) {
	changes, err := w.Watcher.Next()
	if cause := context.Cause(w.ctx); err != nil && cause != nil {
		err = cause
	}
	return changes, err
}

// P1: subscribers hear what a watch would, of their group alone, and all of them after a watch was
// lost.
func TestSubscribersHearOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &losing{Memory: metatest.NewMemory()}
		y := newYard(t, store)
		one, other := processor.Group{Hub: "orders", Group: "one"}, processor.Group{Hub: "orders", Group: "other"}
		y.group(t, one.Hub, one.Group, 2)
		y.group(t, other.Hub, other.Group, 2)
		if err := y.Subscribe(t.Context(), one, func() {}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("before anybody follows: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- y.Follow(ctx, func() {}) }()
		synctest.Wait()
		var heard, elsewhere int
		subscribed, leave := context.WithCancel(t.Context())
		if err := errors.Join(y.Subscribe(subscribed, one, func() { heard++ }), y.Subscribe(t.Context(), other, func() { elsewhere++ })); err != nil {
			t.Fatal(err)
		}
		if err := y.Subscribe(t.Context(), processor.Group{Hub: "nothing"}, func() {}); err == nil {
			t.Error("a hub that is not there can be subscribed to")
		}
		expect := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			testkit.Equal(t, heard, want, "after %s it has heard", what)
			heard = 0
		}
		claim := func(l processor.Lease) processor.Lease {
			t.Helper()
			written, err := y.Claim(t.Context(), one, []processor.Lease{l})
			if err != nil || len(written) != 1 {
				t.Fatal(written, err)
			}
			return written[0]
		}
		l := claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
		expect("a lease was taken", 1)
		l = claim(l)
		expect("it was renewed", 0)
		if _, err := y.Begin(t.Context(), one, l); err != nil {
			t.Fatal(err)
		}
		expect("a checkpoint was begun", 0)
		e, err := y.Put(t.Context(), one, processor.Entry{Key: "presence/a", Value: []byte("1")})
		expect("an entry was put", 1)
		e, err2 := y.Put(t.Context(), one, e)
		expect("it was put again", 0)
		testkit.Must(t, errors.Join(err, err2, y.Remove(t.Context(), one, e)))
		expect("it was removed", 1)
		testkit.Equal(t, elsewhere, 0, "the other group has heard")
		store.lose(meta.ErrWatchLost)
		time.Sleep(2 * lostPause)
		expect("the watch was lost", 1)
		leave()
		synctest.Wait()
		claim(processor.Lease{Partition: "1", Owner: "a", Epoch: 1})
		expect("it has left", 0)
		broken := errors.New("broken")
		store.lose(broken)
		if err := <-done; !errors.Is(err, broken) {
			t.Errorf("a store that fails: %v", err)
		}
		if err := y.Subscribe(t.Context(), one, func() {}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("when nobody follows any more: %v", err)
		}
		cancel()
		if err := y.Follow(ctx, func() {}); err != nil {
			t.Errorf("ended it is %v", err)
		}
	})
}
