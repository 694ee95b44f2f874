package broker

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// forgetful is a store whose watches get lost after their first look, until told not to.
type forgetful struct {
	*memStore
	lose  chan struct{} // a watch is lost for each value
	begun chan struct{} // gets a value when a watch has told the present state
}

func (s forgetful) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	w, err := s.memStore.Watch(ctx, prefix)
	return &forgetfulWatcher{Watcher: w, store: s}, err
}

type forgetfulWatcher struct {
	meta.Watcher
	store   forgetful
	watched bool
}

func (w *forgetfulWatcher) Next() ([]meta.Change, error) {
	if !w.watched {
		w.watched = true
		return w.Watcher.Next()
	}
	w.store.begun <- struct{}{}
	if _, lost := <-w.store.lose; lost {
		return nil, meta.ErrWatchLost
	}
	return w.Watcher.Next()
}

// H1: a node that missed a deletion because its watch was lost learns of it all the same.
func TestLostWatchBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		other := y.open(t)
		mustCreate(t, other, "doomed", 1)
		store := forgetful{memStore: y.store, lose: make(chan struct{}), begun: make(chan struct{})}
		b := open(t, Config{Engine: y.engine, Meta: store})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()

		<-store.begun
		mustCreate(t, other, "new", 1)
		if err := other.DeleteHub(t.Context(), "doomed"); err != nil {
			t.Fatal(err)
		}
		store.lose <- struct{}{}
		<-store.begun
		close(store.lose)
		if got := names(b.Hubs()); len(got) != 1 || got[0] != "new" {
			t.Errorf("knows %q", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}
