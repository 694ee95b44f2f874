package delivery

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestCursorsOfAsManySubscriptionsAsThereMayBeAreOneEntry(t *testing.T) {
	value := []byte{cursorVersion}
	want := make(saved)
	for i := range topics.MaxSubscriptions {
		id := fmt.Sprintf("%013d", i)
		want[id] = math.MaxInt64 - int64(i)
		value = appendCursor(value, id, want[id])
	}
	testkit.Check(t, meta.CheckValue(value))
	if got, err := parseCursors(value); err != nil || !maps.Equal(got, want) {
		t.Errorf("%d of %d came back, %v", len(got), len(want), err)
	}
}

func FuzzCursors(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{cursorVersion})
	f.Add([]byte{2, 1})
	f.Add(appendCursor(appendCursor([]byte{cursorVersion}, "abcdefghijklm", 5), "nopqrstuvwxyz", math.MaxInt64))
	f.Add([]byte{cursorVersion, 200, 'a'})
	f.Add([]byte{cursorVersion, 1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		marks, err := parseCursors(b)
		if err != nil {
			return
		}
		value := []byte{cursorVersion}
		for id, mark := range marks {
			if mark < 0 {
				t.Fatalf("%q has mark %d", id, mark)
			}
			value = appendCursor(value, id, mark)
		}
		if again, err := parseCursors(value); err != nil || !maps.Equal(again, marks) {
			t.Errorf("%v became %v, %v", marks, again, err)
		}
	})
}

// What is done is not done again after a crash, but for what was done within the last second.
func TestCursorsAreSavedWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.publish("orders", ids("e", 20)...)
		after(time.Second + time.Millisecond)
		y.restart()
		after(time.Minute)
		y.wantRequests("", 20, "for 20 events")
		y.publish("orders", ids("f", 20)...)
		y.stop()
		y.start()
		after(time.Minute)
		y.wantRequests("", 40, "for 40 events: stopping saves")
	})
}

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
		entries, err := y.Memory.List(t.Context(), cursorPrefix)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d cursors, %v", len(entries), err)
		}
		ahead := appendCursor([]byte{cursorVersion}, id, 100)
		testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), entries[0].Key, meta.Revision(entries[0].Revision), ahead)))
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
