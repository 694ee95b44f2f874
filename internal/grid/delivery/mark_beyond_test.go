package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// A mark beyond the end of its log is of events that power loss has taken. New ones get their
// numbers; so the mark is put right before there are any, or another crash would pass them.
func TestAMarkBeyondTheEndIsPutRightAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.start()
		y.publish("orders", ids("e", 10)...)
		after(2 * time.Second)
		y.stop()
		entries, err := y.store.List(t.Context(), cursorPrefix)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d cursors, %v", len(entries), err)
		}
		ahead := appendCursor([]byte{cursorVersion}, id, 100)
		if _, err := y.store.CompareAndSet(t.Context(), entries[0].Key, meta.Revision(entries[0].Revision), ahead); err != nil {
			t.Fatal(err)
		}
		y.sender.says(func(ctx context.Context, _ drop) webhook.Result {
			<-ctx.Done()
			return outcome(retry.Canceled)
		})
		y.config = func(c *Config) { c.Grace = -1 }
		y.start()
		wait()
		y.publish("orders", "x", "y", "z")
		wait()
		y.restart()
		y.sender.always(ok())
		after(time.Minute)
		y.restart()
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), append(ids("e", 10), "x", "y", "z"))
		y.stop()
	})
}
