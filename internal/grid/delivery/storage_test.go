package delivery

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fullDisk refuses what is put into logs whose names begin so, and what is too large for retry logs.
type fullDisk struct {
	full, tooLarge atomic.Bool
	prefix         string
}

// G8: what cannot be stored is kept and tried again, and nothing is passed before.
func TestAFullDiskLosesNothing(t *testing.T) {
	for _, log := range []string{"grid-tiers", "shelf-"} {
		t.Run(log, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.stop()
				y.disk = &fullDisk{prefix: log}
				y.start()
				y.topic("orders")
				id := y.subscribe("orders", "receiver")
				y.subscribe("orders", "other")
				y.sender.fails("receiver", status(503))
				wait()
				y.disk.full.Store(true)
				y.publish("orders", ids("e", 50)...)
				after(time.Minute)
				wantIDs(t, "another subscription", y.sender.delivered("other"), ids("e", 50))
				y.sender.always(ok())
				after(time.Minute)
				y.disk.full.Store(false)
				after(10 * time.Minute)
				wantIDs(t, "delivered", y.sender.delivered("receiver"), ids("e", 50))
				if st := y.stats(id); st.Queued+st.InFlight != 0 || len(st.Waiting) != 0 || st.Parked != 0 {
					t.Errorf("stats %+v", st)
				}
			})
		})
	}
}

// The same, with a crash in between.
func TestACrashWhileTheDiskIsFullLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		y.disk = &fullDisk{prefix: "grid-tiers"}
		y.start()
		y.orders("receiver")
		y.sender.always(status(500))
		y.disk.full.Store(true)
		y.publish("orders", ids("e", 50)...)
		after(5 * time.Second)
		y.restart()
		after(5 * time.Second)
		y.sender.always(ok())
		y.stop()
		y.disk.full.Store(false)
		y.start()
		after(time.Hour)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 50))
	})
}

func TestDeadLettersThatCannotBeKeptWait(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.sender.always(status(400))
		y.dead.refuses(eventlog.ErrNoSpace)
		wait()
		y.publish("orders", ids("e", 40)...)
		after(time.Minute)
		if st := y.stats(id); st.DeadLettered[retry.ReasonRefused] != 0 {
			t.Errorf("stats %+v", st)
		}
		y.wantRequests("", 16, "one for each worker: the others wait")
		y.dead.refuses(nil)
		after(time.Minute)
		wantIDs(t, "dead", y.dead.ids(""), ids("e", 40))
		testkit.Equal(t, len(y.dead.all()), 40, "letters of 40 events")
	})
}

// An event that no retry log can hold is retried in place.
func TestWhatIsTooLargeForARetryLogWaitsInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		y.disk = &fullDisk{prefix: "nowhere"}
		y.disk.tooLarge.Store(true)
		y.start()
		id := y.orders("receiver")
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if d.attempts[0] < 3 {
				return status(500)
			}
			return ok()
		})
		y.publish("orders", "a")
		after(2 * time.Second)
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = true }) // it leaves memory,
		wait()
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = false }) // and is known when it is back
		after(10 * time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a"})
		if st := y.stats(id); st.Attempts != 4 || st.Queued != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// Cursors that cannot be saved are saved later.
func TestCursorsAreSavedWhenTheyCanBe(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		var fail atomic.Bool
		y.config = func(c *Config) { c.Meta = failingStore{c.Meta, &fail} }
		y.start()
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		fail.Store(true)
		wait()
		y.publish("orders", ids("e", 5)...)
		after(10 * time.Second)
		fail.Store(false)
		after(2 * time.Second)
		if marks, err := parseCursors([]byte(y.cursors("orders"))); err != nil || marks[id] != 5 {
			t.Errorf("cursors %v, %v", marks, err)
		}
		y.restart()
		after(time.Minute)
		y.wantRequests("", 5, "for 5 events")
	})
}

// failingStore refuses to store.
type failingStore struct {
	meta.Store
	fail *atomic.Bool
}

func (s failingStore) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if s.fail.Load() {
		return 0, errTest
	}
	return s.Store.CompareAndSet(ctx, key, expected, value)
}

var errTest = errors.New("the test wants it so")

func (d *fullDisk) check(log string) error {
	switch {
	case d == nil:
	case d.full.Load() && strings.HasPrefix(log, d.prefix):
		return eventlog.ErrNoSpace
	case d.tooLarge.Load() && strings.HasPrefix(log, "grid-tiers"):
		return eventlog.ErrTooLarge
	}
	return nil
}
