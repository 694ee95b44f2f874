package metatest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

var errTest = errors.New("the test wants it so")

// Until it is told otherwise a faulty store is as good as the one inside.
func TestAFaultyStoreKeepsTheContract(t *testing.T) {
	Run(t, func(*testing.T) meta.Store { return NewFaulty(NewMemory()) })
}

// Each operation can be made to fail, to seem to fail, and to be followed by something else.
func TestInject(t *testing.T) {
	operations := map[OpKind]func(context.Context, meta.Store) error{
		OpGet: func(ctx context.Context, s meta.Store) error {
			_, err := s.Get(ctx, "a/b")
			return err
		},
		OpList: func(ctx context.Context, s meta.Store) error {
			_, err := s.List(ctx, "a/")
			return err
		},
		OpSet: func(ctx context.Context, s meta.Store) error {
			_, err := s.CompareAndSet(ctx, "a/new", 0, []byte("value"))
			return err
		},
		OpDelete: func(ctx context.Context, s meta.Store) error { return s.Delete(ctx, "a/b", 1) },
		OpWatch: func(ctx context.Context, s meta.Store) error {
			_, err := s.Watch(ctx, "a/")
			return err
		},
		OpFresh: func(ctx context.Context, s meta.Store) error { return s.Fresh(ctx, "a/") },
		OpNext: func(ctx context.Context, s meta.Store) error {
			w, err := s.Watch(ctx, "a/")
			if err == nil {
				_, err = w.Next()
			}
			return err
		},
	}
	answers := []struct {
		name       string
		answer     error
		want       error
		wantChange bool
	}{
		{"nothing happens", nil, nil, true},
		{"it fails", errTest, errTest, false},
		{"it is done and nobody hears", Unheard(meta.ErrUncertain), meta.ErrUncertain, true},
		{"something follows", After(func(err error) error { return errors.Join(err, errTest) }), errTest, true},
	}
	for kind, operate := range operations {
		for _, tt := range answers {
			t.Run(kind.String()+": "+tt.name, func(t *testing.T) {
				inner := NewMemory()
				mustSet(t, inner, "a/b", 0, "old")
				s := NewFaulty(inner)
				var asked []Op
				s.Inject(func(op Op) error {
					if op.Kind != kind {
						return nil
					}
					asked = append(asked, op)
					return tt.answer
				})
				wantError(t, kind.String(), operate(t.Context(), s), tt.want)
				if len(asked) != 1 || asked[0].N != 1 || !asked[0].Under("a/") || s.Count(kind) != 1 {
					t.Errorf("asked for %+v, counted %d", asked, s.Count(kind))
				}
				if entries := mustList(t, inner, ""); asked[0].Changes() && (len(entries) != 1) != tt.wantChange {
					t.Errorf("left: %+v", entries)
				}
				s.Inject(nil)
				if tt.want != nil && !tt.wantChange {
					wantError(t, "once it is over", operate(t.Context(), s), nil)
				}
			})
		}
	}
}

// The injected function sees what is to be stored, and may use the store inside.
func TestInjectSeesTheChange(t *testing.T) {
	inner := NewMemory()
	s := NewFaulty(inner)
	s.InjectOnce(func(op Op) bool { return op.Kind == OpSet && op.Key == "b" }, func(op Op) error {
		mustSet(t, inner, op.Key, op.Expected, "other than "+string(op.Value))
		return nil
	})
	mustSet(t, s, "a", 0, "one")
	_, err := s.CompareAndSet(t.Context(), "b", 0, []byte("two"))
	wantError(t, "set", err, meta.ErrConflict)
	entry := mustGet(t, s, "b")
	wantEntry(t, s, "b", "other than two", entry.Revision)
	mustSet(t, s, "b", entry.Revision, "three")
}

// A watch that is lost says so, also to who waits; others of the store go on, and so does one begun
// anew.
func TestLoseWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewFaulty(NewMemory())
		watch := func(ctx context.Context, prefix string) meta.Watcher {
			w, err := s.Watch(ctx, prefix)
			wantError(t, "watch", err, nil)
			_, err = w.Next()
			wantError(t, "state", err, nil)
			return w
		}
		ended := make(chan error, 1)
		lost := watch(t.Context(), "a/")
		go func() {
			_, err := lost.Next()
			ended <- err
		}()
		other := watch(t.Context(), "b/")
		ctx, cancel := context.WithCancel(t.Context())
		left := watch(ctx, "a/")
		cancel()
		synctest.Wait()
		s.LoseWatches("a/")
		wantError(t, "lost", <-ended, meta.ErrWatchLost)
		_, err := left.Next()
		wantError(t, "ended by its context", err, context.Canceled)

		mustSet(t, s, "b/key", 0, "value")
		changes, err := other.Next()
		if err != nil || !slices.ContainsFunc(changes, func(c meta.Change) bool { return c.Key == "b/key" }) {
			t.Errorf("the other watch: %+v, %v", changes, err)
		}
		watch(t.Context(), "a/")
	})
}

func TestShaky(t *testing.T) {
	shaky := Shaky(rand.New(rand.NewPCG(1, 2)), meta.ErrNoSpace, meta.ErrClosed)
	seen := map[error]int{}
	for range 1000 {
		seen[shaky(Op{Kind: OpSet})]++
		testkit.Must(t, shaky(Op{Kind: OpGet}), "a look")
	}
	if seen[meta.ErrNoSpace] < 80 || seen[meta.ErrClosed] < 80 || seen[nil] < 650 {
		t.Errorf("of a thousand changes: %v", seen)
	}
}
