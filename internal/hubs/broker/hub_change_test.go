package broker

import (
	"context"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// interfering is a store in which something happens right before a change.
type interfering struct {
	meta.Store
	before func()
}

func (s *interfering) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.CompareAndSet(ctx, key, expected, value)
}

// H4: two changes of different settings both last, whichever comes first.
func TestConcurrentChangesAreMerged(t *testing.T) {
	y := newYard(t)
	store := &interfering{Store: y.store}
	b, other := open(t, Config{Engine: y.engine, Meta: store}), y.open(t)
	mustCreate(t, b, "orders", 1)
	store.before = func() {
		if _, err := other.UpdateHub(t.Context(), "orders", HubChange{Age: new(time.Hour)}); err != nil {
			t.Error(err)
		}
	}
	got, err := b.UpdateHub(t.Context(), "orders", HubChange{Bytes: new(int64(1000))})
	if want := (Retention{Age: time.Hour, Bytes: 1000}); err != nil || got.Retention != want {
		t.Errorf("got %v, %v, want %v", got.Retention, err, want)
	}
}

// A deletion that has been sent does not depend on the patience of its client: it
// would be in doubt.
func TestDeletionIsDecidedThoughTheClientLeaves(t *testing.T) {
	y := newYard(t)
	store := &interfering{Store: y.store}
	b := open(t, Config{Engine: y.engine, Meta: store})
	mustCreate(t, b, "orders", 1)
	ctx, leave := context.WithCancel(t.Context())
	store.before = leave
	if err := b.DeleteHub(ctx, "orders"); err != nil {
		t.Errorf("got %v", err)
	}
	expectGone(t, b, "orders")
}
