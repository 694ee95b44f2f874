// Package logtest is the conformance suite of the eventlog contract. Every engine runs
// it unchanged:
//
//	func TestConformance(t *testing.T) { logtest.Run(t, open) }
//
// It tests what the contract promises and nothing else, so that an engine on files and
// one on replicated streams can both pass.
package logtest

import (
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Open gives a fresh engine, closed by the test's clean-up, and a function that closes
// it and opens it again over the same storage.
type Open func(t *testing.T) (engine eventlog.Engine, reopen func() eventlog.Engine)

// Run runs the suite.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"events come back as they were sent, in order", testRoundTrip},
		{"a batch gets consecutive numbers and one time", testNumbers},
		{"enqueued times never go backwards", testTimes},
		{"an empty or oversized batch is refused", testRefusals},
		{"a cursor begins where it is told to", testPositions},
		{"a cursor begins at a time", testTimePositions},
		{"a cursor past the end is refused and names the last number", testAhead},
		{"a cursor begins inside a batch", testInsideBatch},
		{"a cursor waits at the end and is woken", testWaits},
		{"a waiting cursor ends with its context", testCancel},
		{"who waits without a goroutine is woken once", testAwait},
		{"submitted batches keep their order without waiting", testPipeline},
		{"a context that has ended: Submit stores or says so", testSubmitContext},
		{"a cancelled wait leaves a whole batch or none", testWaitContext},
		{"many writers: dense, each in its own order, nothing twice", testManyWriters},
		{"many readers see the same", testManyReaders},
		{"bounds follow appends", testBounds},
		{"sealed bounds are the bounds of all that was acknowledged", testSealed},
		{"what a process has seen it knows without asking", testPeek},
		{"partitions and logs are apart", testApart},
		{"the caller's memory is its own again after Submit", testOwnership},
		{"a removed log is gone, for open handles too", testRemove},
		{"a closed engine says so", testClose},
		{"every call on a closed engine says so", testEveryCallAfterClose},
		{"receipts are settled when the engine closes", testReceiptsAtClose},
		{"receipts are settled when the log is removed", testReceiptsAtRemove},
		{"looking for a time ends with the partition", testSeeking},
		{"everything is there after reopening", testReopen},
		{"trim never removes what is at or above", testTrim},
		{"trim past the end keeps the numbers", testTrimPastTheEnd},
		{"a cursor that is overtaken goes on", testOvertaken},
		{"a log is provided before or after its first use, and again", testProvide},
		{"a shape that cannot be is refused", testShapes},
		{"retention by age removes and keeps the numbers", testRetentionByAge},
		{"retention by size removes the oldest and keeps the numbers", testRetention},
		{"producer marks come back with their batch", testProducer},
		{"a claim knows what was stored before, and lets its owner append", testClaim},
		{"frames come back as they were sent, placed, among events", testFrames},
		{"a frame's memory is its caller's own again after Submit", testFrameOwnership},
		{"a cursor begins inside a frame", testInsideFrame},
		{"an empty, oversized or mixed-up frame is refused", testFrameRefusals},
		{"create times do not mislead who reads by enqueued time", testFrameTimes},
		{"frames and events are there after reopening", testFramesReopen},
		{"retention removes whole frames", testFramesRetention},
		{"many writers of frames and events", testFramesOfManyWriters},
		{"batches submitted together are stored in order, each with its number", testSubmitAll},
		{"of batches submitted together none or all are refused", testSubmitAllRefused},
		{"batches submitted together: a prefix is stored when the log ends", testSubmitAllAtTheEnd},
		{"who starts need not wait", testStart},
		{"extents are what is read then", testExtents},
		{"extents begin inside a frame, and see what has come", testExtentsInside},
		{"many runs at once are those that come one by one", testTryNextAll},
		{"extents of what has ended", testExtentsAfterTheEnd},
		{"a cursor begins at a create time", testCreated},
		{"a cursor begins at a create time after reopening, and when some is removed", testCreatedLater},
		{"who reads events only is told of a frame", testEventsOnly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			engine, reopen := open(t)
			tt.run(t, &fixture{t: t, Engine: engine, reopen: reopen})
		})
	}
}

// fixture is an engine with short words for what tests do.
type fixture struct {
	eventlog.Engine
	t      *testing.T
	reopen func() eventlog.Engine
}

func (f *fixture) partition(n int) eventlog.Partition {
	f.t.Helper()
	return f.keeping(n, eventlog.Retention{})
}

func (f *fixture) keeping(n int, r eventlog.Retention) eventlog.Partition {
	f.t.Helper()
	f.provide("orders-1", eventlog.Shape{Partitions: 4, Retention: r})
	return f.handle("orders-1", n)
}

func (f *fixture) provide(log string, shape eventlog.Shape) {
	f.t.Helper()
	if err := f.Provide(f.t.Context(), log, shape); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) handle(log string, n int) eventlog.Partition {
	f.t.Helper()
	p, err := f.Partition(eventlog.PartitionID{Log: log, Number: n})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) append(p eventlog.Partition, texts ...string) eventlog.Appended {
	f.t.Helper()
	done, err := eventlog.Append(f.t.Context(), p, batchOf(texts...))
	if err != nil {
		f.t.Fatal(err)
	}
	return done
}

func (f *fixture) cursor(p eventlog.Partition, at eventlog.Position) eventlog.Cursor {
	f.t.Helper()
	c, err := p.Cursor(f.t.Context(), at)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

func batchOf(texts ...string) eventlog.Batch {
	var b eventlog.Batch
	for _, text := range texts {
		b.Events = append(b.Events, eventlog.Event{Message: []byte(text)})
	}
	return b
}

// rest reads everything up to the end.
func (f *fixture) rest(c eventlog.Cursor) (texts []string) {
	f.t.Helper()
	for {
		run, err := c.TryNext(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if len(run.Events) == 0 {
			return texts
		}
		for _, e := range run.Events {
			texts = append(texts, string(e.Message))
		}
		if c.At() != run.Next() {
			f.t.Fatalf("after events up to %d the cursor stands at %d", run.Next()-1, c.At())
		}
	}
}

func (f *fixture) wantRest(p eventlog.Partition, at eventlog.Position, want ...string) {
	f.t.Helper()
	if got := f.rest(f.cursor(p, at)); !slices.Equal(got, want) {
		f.t.Errorf("from %v: got %q, want %q", at, got, want)
	}
}
