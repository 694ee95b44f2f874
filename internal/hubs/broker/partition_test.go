package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H10: what a partition says of itself.
func TestPartitionInfo(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		what   string
		bounds eventlog.Bounds
		want   PartitionInfo
	}{
		{"before the first event all is -1", eventlog.Bounds{},
			PartitionInfo{First: -1, Last: -1, LastOffset: "-1", Empty: true}},
		{"with one event it is first and last", eventlog.Bounds{First: 0, Next: 1, LastTime: at, Bytes: 100},
			PartitionInfo{First: 0, Last: 0, Next: 1, LastOffset: "0", LastTime: at, Bytes: 100}},
		{"retention moves the first", eventlog.Bounds{First: 40, Next: 1842, LastTime: at, Bytes: 9},
			PartitionInfo{First: 40, Last: 1841, Next: 1842, LastOffset: "1841", LastTime: at, Bytes: 9}},
		{"emptied by retention it still knows its last", eventlog.Bounds{First: 1842, Next: 1842, LastTime: at},
			PartitionInfo{First: 1842, Last: 1841, Next: 1842, LastOffset: "1841", LastTime: at, Empty: true}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			tt.want.Hub, tt.want.ID, tt.want.Retrieved = "orders", "3", at
			testkit.Diff(t, tt.want, partitionInfo("orders", "3", tt.bounds, at))
		})
	}
}

// H10: a partition's information follows its events.
func TestPartition(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "Orders", 2)
	p := testkit.Value(b.Partition(t.Context(), "orders", "1"))(t)
	if p.Hub != "Orders" || p.ID != "1" || p.First != -1 || p.Last != -1 || !p.Empty || !p.LastTime.IsZero() || p.Retrieved.IsZero() {
		t.Errorf("new: %+v", p)
	}
	stored := mustPublish(t, b, "orders", Target{Partition: "1"}, "a", "b", "c")
	p = testkit.Value(b.Partition(t.Context(), "orders", "1"))(t)
	if p.First != 0 || p.Last != 2 || p.LastOffset != "2" || p.Empty || !p.LastTime.Equal(stored.Time) {
		t.Errorf("with three events: %+v", p)
	}
	all := testkit.Value(b.Partitions(t.Context(), "orders"))(t)
	testkit.Equal(t, len(all), 2, "partitions")
	for i, one := range []PartitionInfo{testkit.Value(b.Partition(t.Context(), "orders", "0"))(t), p} {
		all[i].Retrieved = one.Retrieved
		testkit.Diff(t, one, all[i])
	}
	for _, id := range []string{"2", "x", ""} {
		wantNotFound(t, testkit.Err(b.Partition(t.Context(), "orders", id)), KindPartition, "%q", id)
	}
}

// H4: a cursor begins where it is asked to, and reading removes nothing.
func TestCursorPositions(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	stored := mustPublish(t, b, "orders", Target{}, "a", "b", "c")
	tests := []struct {
		what string
		at   eventlog.Position
		want []string
	}{
		{"from the earliest", eventlog.Earliest(), []string{"a", "b", "c"}},
		{"from the latest", eventlog.Latest(), nil},
		{"at a number", eventlog.At(1), []string{"b", "c"}},
		{"after a number", eventlog.After(1), []string{"c"}},
		{"since a time", eventlog.Since(stored.Time), []string{"a", "b", "c"}},
		{"and back again", eventlog.Earliest(), []string{"a", "b", "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Slices(t, read(t, b, "orders", DefaultGroup, 0, tt.at), tt.want)
		})
	}
	var ahead *eventlog.PositionError
	if _, err := b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.At(9)); !errors.As(err, &ahead) || ahead.Last != 2 {
		t.Errorf("ahead of the end: got %v", err)
	}
	if _, err := b.Cursor(t.Context(), "orders", DefaultGroup, "1", eventlog.Earliest()); !isNotFound(err, KindPartition) {
		t.Errorf("another partition: got %v", err)
	}
}

// H4: retention removes also from partitions that nobody has used since the start.
func TestRetentionOfIdlePartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		if _, err := b.CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: 2, Age: new(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		mustPublish(t, b, "orders", Target{Partition: "1"}, "a", "b")
		y.Restart(t)
		b = y.open(t)
		go y.Engine.Run(t.Context())
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		p := testkit.Value(b.Partition(t.Context(), "orders", "1"))(t)
		if !p.Empty || p.First != 2 || p.Last != 1 || p.LastOffset != "1" {
			t.Errorf("got %+v", p)
		}
	})
}

// H4, H10: a hub deleted just before it is read is not there, like one deleted earlier.
func TestReadingAHubDeletedMeanwhile(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpBounds || op.Kind == logtest.OpCursor {
			testkit.Check(t, b.DeleteHub(t.Context(), "orders"))
		}
		return nil
	})
	mustCreate(t, b, "orders", 1)
	wantNotFound(t, testkit.Err(b.Partition(t.Context(), "orders", "0")), KindHub, "partition")
	mustCreate(t, b, "orders", 1)
	wantNotFound(t, testkit.Err(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest())), KindHub, "cursor")
}

// A closed engine is said to be closed.
func TestClosedEngine(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	testkit.Must(t, y.Engine.Close())
	testkit.ErrorIs(t, testkit.Err(b.Publish(t.Context(), "orders", Target{}, events("x"))), eventlog.ErrClosed, "publish")
	testkit.ErrorIs(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: "late", Partitions: 1})), eventlog.ErrClosed, "create")
	testkit.ErrorIs(t, testkit.Err(b.Partition(t.Context(), "late", "0")), eventlog.ErrClosed, "a hub made after that")
}
