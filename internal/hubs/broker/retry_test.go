package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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

// contested is a store in which somebody else is faster until a time.
type contested struct {
	*memStore
	until time.Time
}

func (s contested) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if time.Now().Before(s.until) {
		return 0, meta.ErrConflict
	}
	return s.memStore.CompareAndSet(ctx, key, expected, value)
}

// A change does not spend its tries at once: it gets through when the others are done,
// and waits no longer than its client does.
func TestContestedChangesWait(t *testing.T) {
	tests := []struct {
		what   string
		change func(context.Context, *Broker) error
	}{
		{"update", func(ctx context.Context, b *Broker) error {
			_, err := b.UpdateHub(ctx, "orders", HubChange{Bytes: new(int64(7))})
			return err
		}},
		{"delete", func(ctx context.Context, b *Broker) error { return b.DeleteHub(ctx, "orders") }},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				mustCreate(t, y.open(t), "orders", 1)
				b := open(t, Config{Engine: y.engine, Meta: contested{y.store, time.Now().Add(time.Second)}})

				hasty, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				began := time.Now()
				if err := tt.change(hasty, b); !errors.Is(err, meta.ErrConflict) {
					t.Errorf("a client in haste got %v", err)
				}
				if took := time.Since(began); took != 100*time.Millisecond {
					t.Errorf("a client in haste waited %v", took)
				}
				if err := tt.change(t.Context(), b); err != nil {
					t.Errorf("a patient client got %v", err)
				}
			})
		})
	}
}

// Who never gets through is told so, after a bounded time.
func TestChangesGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		mustCreate(t, y.open(t), "orders", 1)
		b := open(t, Config{Engine: y.engine, Meta: contested{y.store, time.Now().Add(time.Hour)}})
		began := time.Now()
		_, err := b.UpdateHub(t.Context(), "orders", forEver())
		if took := time.Since(began); !errors.Is(err, meta.ErrConflict) || took < time.Second || took > time.Minute {
			t.Errorf("got %v after %v", err, took)
		}
	})
}
