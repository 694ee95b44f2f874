package logtest

import (
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// testProvide: what is said of a log counts for handles from before, too, and the newest word does.
// // H4
func testProvide(t *testing.T, f *fixture) {
	early := f.handle("orders-3", 1) // before anybody has said anything
	f.provide("orders-3", eventlog.Shape{Partitions: 3, Kind: eventlog.KindTopic})
	f.provide("orders-3", eventlog.Shape{Partitions: 3, Kind: eventlog.KindTopic})
	f.provide("orders-3", eventlog.Shape{Partitions: 1, Kind: eventlog.KindTopic}) // fewer change nothing
	late := f.handle("orders-3", 2)
	f.append(early, "a")
	f.append(late, "b")
	f.wantRest(early, eventlog.Earliest(), "a")
	f.wantRest(late, eventlog.Earliest(), "b")
	f.runs()
	f.provide("orders-3", eventlog.Shape{Partitions: 3, Kind: eventlog.KindTopic, Retention: eventlog.Retention{Age: 50 * time.Millisecond}})
	for _, p := range []eventlog.Partition{early, late} {
		if b := f.until(p, eventlog.Bounds.Empty); b.Next != 1 {
			t.Errorf("bounds %+v: the numbers are to stay", b)
		}
	}
	if p, err := f.Partition(eventlog.PartitionID{Log: "orders-3", Number: 3}); err == nil {
		if _, err := p.Bounds(t.Context()); err == nil {
			t.Error("a partition that the log does not have is there")
		}
	}
	f.provide("orders-3", eventlog.Shape{Partitions: 4, Kind: eventlog.KindTopic})
	f.append(f.handle("orders-3", 3), "c")
	if err := f.Remove(t.Context(), "orders-3"); err != nil {
		t.Fatal(err)
	}
	if err := f.Provide(t.Context(), "orders-3", eventlog.Shape{Partitions: 4}); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("a removed log is provided: %v", err)
	}
}

func testShapes(t *testing.T, f *fixture) {
	for what, shape := range map[string]eventlog.Shape{
		"no partitions":       {},
		"less than none":      {Partitions: -1},
		"an age below zero":   {Partitions: 1, Retention: eventlog.Retention{Age: -1}},
		"a size below zero":   {Partitions: 1, Retention: eventlog.Retention{Bytes: -1}},
		"a kind of its own":   {Partitions: 1, Kind: 99},
		"a kind that is none": {Partitions: 1, Kind: -1},
	} {
		if err := f.Provide(t.Context(), "orders-1", shape); err == nil {
			t.Errorf("%s: it is provided", what)
		}
	}
	if err := f.Provide(t.Context(), "Not a name", eventlog.Shape{Partitions: 1}); err == nil {
		t.Error("a log is provided that has no name of storage")
	}
}
