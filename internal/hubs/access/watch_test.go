package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// What one node does to policies counts at the other, without being asked.
func TestNodesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hub := newMemStore(), newHubs("orders").find
		a, b := open(t, Config{Meta: store, Hub: hub}), open(t, Config{Meta: store, Hub: hub})
		defer running(t, a)()
		defer running(t, b)()

		p := mustCreate(t, a, "orders", "p", auth.Send)
		synctest.Wait()
		if _, err := b.Key("p", p.Primary); err != nil {
			t.Errorf("created: %v", err)
		}
		changed, err := b.Regenerate(t.Context(), "orders", "p", PrimaryKey)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := a.Key("p", p.Primary); !errors.Is(err, auth.ErrSignature) {
			t.Errorf("the old key: %v", err)
		}
		if _, err := a.Key("p", changed.Primary); err != nil {
			t.Errorf("the new key: %v", err)
		}
		if err := a.Delete(t.Context(), "orders", "p"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := b.Key("p", changed.Primary); !errors.Is(err, auth.ErrSignature) {
			t.Errorf("deleted: %v", err)
		}
	})
}

// What happened while a node did not watch it learns when it does.
func TestRunCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		a := open(t, Config{Meta: store})
		for _, name := range []string{"stays", "goes", "returns"} {
			mustCreate(t, a, "", name, auth.Send)
		}
		b := open(t, Config{Meta: store})
		for _, name := range []string{"goes", "returns"} {
			if err := a.Delete(t.Context(), "", name); err != nil {
				t.Fatal(err)
			}
		}
		mustCreate(t, a, "", "returns", auth.Listen)
		mustCreate(t, a, "", "comes", auth.Send)
		stop := running(t, b)
		synctest.Wait()
		if got := names(t, b, ""); !slices.Equal(got, []string{"comes", "returns", auth.RootPolicy, "stays"}) {
			t.Errorf("b knows %q", got)
		}
		if p, _ := b.Policy("", "returns"); p.Rights != auth.Listen {
			t.Errorf("b knows %+v", p)
		}
		stop()
		if err := a.Delete(t.Context(), "", "comes"); err != nil {
			t.Fatal(err)
		}
		defer running(t, b)()
		synctest.Wait()
		if _, err := b.Policy("", "comes"); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// A policy that cannot be read stops nobody from seeing the others, and the one that was
// there stays.
func TestRunGoesOnPastNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		a, b := open(t, Config{Meta: store}), open(t, Config{Meta: store})
		mustCreate(t, a, "", "p", auth.Send)
		defer running(t, b)()
		synctest.Wait()
		entry, err := store.Get(t.Context(), "policies/namespace/p")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CompareAndSet(t.Context(), entry.Key, entry.Revision, []byte("{")); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, a, "", "q", auth.Send)
		synctest.Wait()
		if got := names(t, b, ""); !slices.Equal(got, []string{"p", "q", auth.RootPolicy}) {
			t.Errorf("b knows %q", got)
		}
	})
}

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

// A node that missed a deletion because its watch was lost learns of it all the same.
func TestLostWatchBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		other := open(t, Config{Meta: store})
		mustCreate(t, other, "", "doomed", auth.Send)
		lossy := forgetful{memStore: store, lose: make(chan struct{}), begun: make(chan struct{})}
		k := open(t, Config{Meta: lossy})
		stop := running(t, k)

		<-lossy.begun
		mustCreate(t, other, "", "new", auth.Send)
		if err := other.Delete(t.Context(), "", "doomed"); err != nil {
			t.Fatal(err)
		}
		lossy.lose <- struct{}{}
		<-lossy.begun
		close(lossy.lose)
		if got := names(t, k, ""); !slices.Equal(got, []string{"new", auth.RootPolicy}) {
			t.Errorf("knows %q", got)
		}
		stop()
	})
}

// late is a store whose watches tell a change only when let.
type late struct {
	*memStore
	let chan struct{}
}

func (s late) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	w, err := s.memStore.Watch(ctx, prefix)
	return &lateWatcher{Watcher: w, let: s.let}, err
}

type lateWatcher struct {
	meta.Watcher
	let chan struct{}
}

func (w *lateWatcher) Next() ([]meta.Change, error) {
	changes, err := w.Watcher.Next()
	<-w.let
	return changes, err
}

// H9: a watch that is late does not let a deleted policy in once more.
func TestLateWatchBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := late{memStore: newMemStore(), let: make(chan struct{})}
		k := open(t, Config{Meta: store})
		stop := running(t, k)
		store.let <- struct{}{}
		p := mustCreate(t, k, "", "p", auth.Send)
		synctest.Wait() // the watch has the policy in its hands
		if err := k.Delete(t.Context(), "", "p"); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it tells the policy, then its deletion
			store.let <- struct{}{}
			synctest.Wait()
			if _, err := k.Key("p", p.Primary); !errors.Is(err, auth.ErrSignature) {
				t.Errorf("got %v", err)
			}
		}
		if got := len(k.policies.seen); got != 1 {
			t.Errorf("%d keys are remembered", got)
		}
		close(store.let)
		stop()
	})
}

// H9: nor a key that was made anew.
func TestLateWatchBringsNoOldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := late{memStore: newMemStore(), let: make(chan struct{})}
		k := open(t, Config{Meta: store})
		stop := running(t, k)
		store.let <- struct{}{}
		old := mustCreate(t, k, "", "p", auth.Send)
		synctest.Wait() // the watch has the first state in its hands
		fresh, err := k.Regenerate(t.Context(), "", "p", PrimaryKey)
		if err != nil {
			t.Fatal(err)
		}
		store.let <- struct{}{}
		synctest.Wait()
		if _, err := k.Key("p", old.Primary); !errors.Is(err, auth.ErrSignature) {
			t.Errorf("the old key: %v", err)
		}
		if _, err := k.Key("p", fresh.Primary); err != nil {
			t.Errorf("the new key: %v", err)
		}
		close(store.let)
		stop()
	})
}

// A watch that fails is reported, not passed over.
func TestRunReportsAFailedWatch(t *testing.T) {
	k := open(t, Config{Meta: closing{newMemStore()}})
	if err := k.Run(t.Context()); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

type closing struct{ meta.Store }

func (closing) Watch(context.Context, string) (meta.Watcher, error) { return nil, meta.ErrClosed }

// Starting and stopping while policies come and go leaves every node with the truth.
func TestRunStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		nodes := []*Registry{open(t, Config{Meta: store}), open(t, Config{Meta: store})}
		for round := range 30 {
			stop := []func(){running(t, nodes[0]), running(t, nodes[1])}
			name := fmt.Sprint("p", round%5)
			for _, k := range nodes {
				go k.Create(t.Context(), Policy{Name: name, Rights: auth.Send})
				go k.Regenerate(t.Context(), "", name, SecondaryKey)
				go k.Delete(t.Context(), "", name)
				go k.Key(name, "guess")
			}
			if round%3 == 0 {
				synctest.Wait()
			}
			stop[0]()
			stop[1]()
		}
		synctest.Wait()
		for _, k := range nodes {
			defer running(t, k)()
		}
		synctest.Wait()
		want, _ := open(t, Config{Meta: store}).Policies("")
		for i, k := range nodes {
			if got, _ := k.Policies(""); !slices.Equal(got, want) {
				t.Errorf("node %d knows %+v, want %+v", i, got, want)
			}
			if got := len(k.policies.seen); got != len(want) {
				t.Errorf("node %d remembers %d keys for %d policies", i, got, len(want))
			}
		}
	})
}

// Who waits for a turn can leave.
func TestWaitingForATurnEnds(t *testing.T) {
	k := open(t, Config{})
	if err := k.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer k.end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Create(ctx, Policy{Name: "p", Rights: auth.Send}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := k.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
}
