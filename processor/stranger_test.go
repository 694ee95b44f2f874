package processor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// between does something between two reads of a round.
type between struct {
	processor.Store
	once sync.Once
	do   func()
	on   func() bool
}

func (s *between) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	if s.on() {
		s.once.Do(s.do)
	}
	return s.Store.Leases(ctx, g)
}

// An instance that came while the records were being read is none of another program's.
func TestAnInstanceThatComesWhileTheRecordsAreReadIsNoStranger(t *testing.T) {
	bubble(t, 2, func(w *world) {
		begin := time.Now()
		s := &between{Store: w.store, on: func() bool { return time.Since(begin) > 5*time.Second }}
		s.do = func() {
			ctx := context.Background()
			_, err := w.store.Put(ctx, group, processor.Entry{Key: "presence/b", Value: []byte(`{"nonce":"x"}`)})
			testkit.Check(t, err)
			l := w.lease("1")
			l.Owner, l.Epoch = "b", l.Epoch+1
			if won, err := w.store.Claim(ctx, group, []processor.Lease{l}); err != nil || len(won) != 1 {
				t.Error(won, err)
			}
		}
		cfg := w.config("a")
		cfg.Store = s
		w.start(cfg, w.note)
		after(15 * time.Second)
		testkit.Equal(t, w.owners(), "a:0 b:1", "owners")
		for _, cfg := range w.hub.opened() {
			if cfg.Epoch == hub.Exclusive(0) {
				t.Error("a reader showed no epoch")
			}
		}
	})
}
