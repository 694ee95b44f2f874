package disk

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4: a reader finds nothing, and no damage, where all that it was about to read has been removed
// between its look at the end and its going to the segment.
func TestACursorWhoseEventsAreRemovedAsItGoesToThem(t *testing.T) {
	e := testkit.Value(Open(Config{FS: vfs.NewMem(), Log: testkit.Quiet()}))(t)
	defer e.Close()
	p := testkit.Value(e.Partition(eventlog.PartitionID{Log: "orders-1"}))(t)
	batch := func() eventlog.Batch { return eventlog.Batch{Events: []eventlog.Event{{Message: []byte("x")}}} }
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, batch())))
	opened := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
	defer opened.Close()
	c := opened.(*cursor) // it has looked at the end, and found an event before that
	testkit.Must(t, p.Trim(t.Context(), 1))
	if bounds, err := p.Bounds(t.Context()); err != nil || !bounds.Empty() {
		t.Fatalf("bounds %+v, %v: nothing was removed", bounds, err)
	}
	if ok, err := c.enter(); ok || err != nil {
		t.Errorf("it stands before something to read: %t, %v", ok, err)
	}
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, batch())))
	if run, err := opened.TryNext(t.Context()); err != nil || run.First != 1 || len(run.Events) != 1 {
		t.Errorf("then it read %+v, %v", run, err)
	}
}

// H4: a search that goes on beside a damaged segment, while the partition is closed, says so.
func TestASearchByTimeWhileThePartitionCloses(t *testing.T) {
	e := testkit.Value(Open(Config{FS: vfs.NewMem(), Log: testkit.Quiet()}))(t)
	opened := testkit.Value(e.Partition(eventlog.PartitionID{Log: "orders-1"}))(t)
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), opened, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("x")}}})))
	p := opened.(*partition)
	testkit.Must(t, e.Close())
	_, err := p.beginningOf(1) // where it stood as the segments were let go
	testkit.ErrorIs(t, err, errDropped)
	_, err = p.searchTime(roundUp(time.Now())) // where it goes on
	testkit.ErrorIs(t, err, eventlog.ErrClosed)
}
