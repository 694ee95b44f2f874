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

// An instance that came while the records were being read is none of another program's.
func TestAnInstanceThatComesWhileTheRecordsAreReadIsNoStranger(t *testing.T) {
	bubble(t, 2, func(w *world) {
		begin := time.Now()
		cfg, s := w.faulty("a")
		var once sync.Once
		come := func() {
			ctx := context.Background()
			testkit.Check(t, testkit.Err(w.store.Put(ctx, group, processor.Entry{Key: "presence/b", Value: []byte(`{"nonce":"x"}`)})))
			l := w.lease("1")
			l.Owner, l.Epoch = "b", l.Epoch+1
			if won, err := w.store.Claim(ctx, group, []processor.Lease{l}); err != nil || len(won) != 1 {
				t.Error(won, err)
			}
		}
		s.before = func(op string) {
			if op == "leases" && time.Since(begin) > 5*time.Second {
				once.Do(come)
			}
		}
		w.start(cfg, w.note)
		after(15 * time.Second)
		testkit.Equal(t, w.owners(), "a:0 b:1", "owners")
		for _, cfg := range w.hub.Opened() {
			if cfg.Epoch == hub.Exclusive(0) {
				t.Error("a reader showed no epoch")
			}
		}
	})
}
