package broker

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H1, H2, H4: with real files, all is there after a restart and what was deleted is not.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	start := func() (*Broker, func()) {
		store := testkit.Value(bolt.Open(bolt.Config{Path: filepath.Join(dir, "meta.db"), Log: testkit.Quiet()}))(t)
		engine := testkit.Value(disk.Open(disk.Config{Dir: dir, SegmentBytes: 16 << 10, Log: testkit.Quiet()}))(t)
		b := open(t, Config{Engine: engine, Meta: store})
		return b, func() {
			testkit.Check(t, engine.Close())
			testkit.Check(t, store.Close())
		}
	}

	b, stop := start()
	mustCreate(t, b, "Orders/EU", 2, "billing")
	mustCreate(t, b, "brief", 1)
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders/eu", HubChange{Age: new(time.Hour)})))
	mustPublish(t, b, "orders/eu", Target{Partition: "1"}, "a", "b")
	mustPublish(t, b, "brief", Target{}, "x")
	testkit.Must(t, b.DeleteHub(t.Context(), "brief"))
	producer := mustBegin(t, b, "orders/eu", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(3))})
	mustStore(t, producer, 1, "once")
	before := b.Hubs()
	stop()

	b, stop = start()
	defer stop()
	if after := b.Hubs(); !slices.Equal(before, after) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	testkit.Slices(t, groupNames(t, b, "orders/eu"), []string{DefaultGroup, "billing"}, "groups")
	if got := readAll(t, b, "ORDERS/EU"); !slices.Equal(got[1], []string{"a", "b"}) {
		t.Errorf("events %q", got)
	}
	expectGone(t, b, "brief")
	lower := mustBegin(t, b, "orders/eu", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(2))})
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), lower, 2, "x")), ErrProducerFenced, "a producer's old epoch")
	mustStore(t, mustBegin(t, b, "orders/eu", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(3))}), 1, "once")
	expect(t, b, "orders/eu", "once")
}
