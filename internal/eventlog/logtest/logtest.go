// Package logtest is the conformance suite of the eventlog contract. Every engine runs
// it unchanged:
//
//	func TestConformance(t *testing.T) { logtest.Run(t, open) }
//
// It tests what the contract promises and nothing else, so that an engine on files and
// one on replicated streams can both pass.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/eventlog"
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
		{"submitted batches keep their order without waiting", testPipeline},
		{"many writers: dense, each in its own order, nothing twice", testManyWriters},
		{"many readers see the same", testManyReaders},
		{"bounds follow appends", testBounds},
		{"partitions and logs are apart", testApart},
		{"the caller's memory is its own again after Submit", testOwnership},
		{"a removed log is gone, for open handles too", testRemove},
		{"a closed engine says so", testClose},
		{"everything is there after reopening", testReopen},
		{"trim never removes what is at or above", testTrim},
		{"retention by size removes the oldest and keeps the numbers", testRetention},
		{"producer marks come back with their batch", testProducer},
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
	p, err := f.Partition(eventlog.PartitionID{Log: "orders-1", Number: n}, r)
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
		if c.Place() != run.Next() {
			f.t.Fatalf("after events up to %d the cursor stands at %d", run.Next()-1, c.Place())
		}
	}
}

func (f *fixture) wantRest(p eventlog.Partition, at eventlog.Position, want ...string) {
	f.t.Helper()
	if got := f.rest(f.cursor(p, at)); !slices.Equal(got, want) {
		f.t.Errorf("from %v: got %q, want %q", at, got, want)
	}
}

// H3
func testRoundTrip(t *testing.T, f *fixture) {
	p := f.partition(0)
	sent := []eventlog.Event{
		{Message: []byte("plain")},
		{Key: []byte("customer-42"), Message: []byte("with a key")},
		{Message: []byte{}},
		{Key: bytes.Repeat([]byte{0xff}, eventlog.MaxKeyBytes), Message: bytes.Repeat([]byte{0}, 300<<10)},
		{Message: []byte("last")},
	}
	if _, err := eventlog.Append(t.Context(), p, eventlog.Batch{Events: sent}); err != nil {
		t.Fatal(err)
	}
	run, err := f.cursor(p, eventlog.Earliest()).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Events) != len(sent) {
		t.Fatalf("got %d events, want %d", len(run.Events), len(sent))
	}
	for i, e := range run.Events {
		if !bytes.Equal(e.Key, sent[i].Key) || !bytes.Equal(e.Message, sent[i].Message) {
			t.Errorf("event %d came back different", i)
		}
	}
}

// H3
func testNumbers(t *testing.T, f *fixture) {
	p := f.partition(0)
	for i, want := range []eventlog.Sequence{0, 3, 5} {
		done := f.append(p, []string{"a", "b", "c"}[:3-i]...)
		if done.First != want {
			t.Errorf("batch %d begins at %d, want %d", i, done.First, want)
		}
		run, err := f.cursor(p, eventlog.At(want)).Next(t.Context())
		if err != nil || run.First != want || !run.Time.Equal(done.Time) {
			t.Errorf("read back %d at %v (%v), want %d at %v", run.First, run.Time, err, want, done.Time)
		}
	}
}

// H3
func testTimes(t *testing.T, f *fixture) {
	p := f.partition(0)
	before := time.Now().Truncate(time.Millisecond)
	var last time.Time
	for range 50 {
		done := f.append(p, "tick")
		if done.Time.Before(last) || done.Time.Before(before) {
			t.Fatalf("enqueued at %v after %v", done.Time, last)
		}
		if !done.Time.Equal(done.Time.Truncate(time.Millisecond)) {
			t.Fatalf("time %v is not in whole milliseconds", done.Time)
		}
		last = done.Time
	}
}

func testRefusals(t *testing.T, f *fixture) {
	p := f.partition(0)
	huge := eventlog.Batch{Events: []eventlog.Event{{Message: make([]byte, eventlog.MaxBatchBytes)}}}
	longKey := eventlog.Batch{Events: []eventlog.Event{{Key: make([]byte, eventlog.MaxKeyBytes+1)}}}
	for _, tt := range []struct {
		batch eventlog.Batch
		want  error
	}{{eventlog.Batch{}, eventlog.ErrEmptyBatch}, {huge, eventlog.ErrTooLarge}, {longKey, eventlog.ErrTooLarge}} {
		if _, err := eventlog.Append(t.Context(), p, tt.batch); !errors.Is(err, tt.want) {
			t.Errorf("got %v, want %v", err, tt.want)
		}
	}
	largest := make([]byte, eventlog.MaxBatchBytes-eventlog.EventOverheadBytes)
	done, err := eventlog.Append(t.Context(), p, eventlog.Batch{Events: []eventlog.Event{{Message: largest}}})
	if err != nil || done.First != 0 {
		t.Errorf("the largest batch: %v at %d", err, done.First)
	}
}

// H4
func testPositions(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.wantRest(p, eventlog.Earliest())
	f.wantRest(p, eventlog.Latest())
	f.wantRest(p, eventlog.At(0))
	f.wantRest(p, eventlog.After(-1))
	f.append(p, "0")
	f.append(p, "1", "2")
	f.append(p, "3")
	latest := f.cursor(p, eventlog.Latest())
	f.append(p, "4")
	f.wantRest(p, eventlog.Earliest(), "0", "1", "2", "3", "4")
	f.wantRest(p, eventlog.At(-7), "0", "1", "2", "3", "4")
	f.wantRest(p, eventlog.At(3), "3", "4")
	f.wantRest(p, eventlog.After(3), "4")
	f.wantRest(p, eventlog.After(4))
	if got := f.rest(latest); !slices.Equal(got, []string{"4"}) {
		t.Errorf("latest gave %q, want the event after it", got)
	}
}

// H4
func testTimePositions(t *testing.T, f *fixture) {
	p := f.partition(0)
	first := f.append(p, "a")
	second := first
	for second.Time.Equal(first.Time) { // until the clock has moved on
		second = f.append(p, "b")
	}
	var later []string
	for range 3 {
		f.append(p, "c")
		later = append(later, "c")
	}
	f.wantRest(p, eventlog.Since(second.Time), append([]string{"b"}, later...)...)
	f.wantRest(p, eventlog.Since(first.Time.Add(time.Nanosecond)), append([]string{"b"}, later...)...)
	all := f.rest(f.cursor(p, eventlog.Since(time.Time{})))
	if len(all) < 5 || all[0] != "a" {
		t.Errorf("since the year 1: %q", all)
	}
	f.wantRest(p, eventlog.Since(time.Now().Add(time.Hour)))
}

// H4
func testAhead(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "0", "1")
	_, err := p.Cursor(t.Context(), eventlog.At(3))
	var ahead *eventlog.PositionError
	if !errors.As(err, &ahead) || ahead.Asked != 3 || ahead.Last != 1 {
		t.Errorf("got %v, want a PositionError for 3 with last 1", err)
	}
	f.wantRest(p, eventlog.At(2))
}

func testInsideBatch(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "0", "1", "2", "3")
	run, err := f.cursor(p, eventlog.At(2)).Next(t.Context())
	if err != nil || run.First != 2 || len(run.Events) != 2 || string(run.Events[0].Message) != "2" {
		t.Errorf("got %+v, %v, want events 2 and 3", run, err)
	}
}

func testWaits(t *testing.T, f *fixture) {
	p := f.partition(0)
	c := f.cursor(p, eventlog.Earliest())
	got := make(chan string)
	go func() {
		defer close(got)
		for range 3 {
			run, err := c.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			got <- string(run.Events[0].Message)
		}
	}()
	for _, text := range []string{"x", "y", "z"} {
		f.append(p, text)
		if g := <-got; g != text {
			t.Errorf("woken with %q, want %q", g, text)
		}
	}
}

func testCancel(t *testing.T, f *fixture) {
	c := f.cursor(f.partition(0), eventlog.Earliest())
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the reader went home")
	time.AfterFunc(time.Millisecond, func() { cancel(reason) })
	if _, err := c.Next(ctx); !errors.Is(err, reason) {
		t.Errorf("got %v, want the context's cause", err)
	}
	f.append(f.partition(0), "later")
	if run, err := c.Next(t.Context()); err != nil || run.First != 0 {
		t.Errorf("the cursor is of no use after a cancelled wait: %v", err)
	}
}

// H2
func testPipeline(t *testing.T, f *fixture) {
	p := f.partition(0)
	var receipts []eventlog.Receipt
	var want []string
	for i := range 100 {
		text := fmt.Sprint(i)
		r, err := p.Submit(t.Context(), batchOf(text))
		if err != nil {
			t.Fatal(err)
		}
		receipts, want = append(receipts, r), append(want, text)
	}
	for i := range receipts { // waiting in any order is allowed
		i = len(receipts) - 1 - i
		done, err := receipts[i].Wait(t.Context())
		if err != nil || done.First != eventlog.Sequence(i) {
			t.Fatalf("receipt %d: stored at %d, %v", i, done.First, err)
		}
	}
	f.wantRest(p, eventlog.Earliest(), want...)
}

// H2, H3
func testManyWriters(t *testing.T, f *fixture) {
	const writers, each = 16, 40
	p := f.partition(0)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := eventlog.Append(t.Context(), p, batchOf(fmt.Sprintf("%d/%d/a", w, i), fmt.Sprintf("%d/%d/b", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := f.rest(f.cursor(p, eventlog.Earliest()))
	if len(seen) != writers*each*2 {
		t.Fatalf("read %d events, want %d", len(seen), writers*each*2)
	}
	var next [writers]int
	for i := 0; i < len(seen); i += 2 {
		var w, n int
		fmt.Sscanf(seen[i], "%d/%d/a", &w, &n)
		if n != next[w] || seen[i+1] != fmt.Sprintf("%d/%d/b", w, n) {
			t.Fatalf("writer %d: %q and %q where its batch %d should be", w, seen[i], seen[i+1], next[w])
		}
		next[w]++
	}
}

// H4
func testManyReaders(t *testing.T, f *fixture) {
	const readers, events = 8, 200
	p := f.partition(0)
	var wg sync.WaitGroup
	for range readers {
		c := f.cursor(p, eventlog.Latest())
		wg.Go(func() {
			for i := 0; i < events; {
				run, err := c.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range run.Events {
					if string(e.Message) != fmt.Sprint(i) {
						t.Errorf("got %q, want %d", e.Message, i)
						return
					}
					i++
				}
			}
		})
	}
	for i := range events {
		f.append(p, fmt.Sprint(i))
	}
	wg.Wait()
}

// H10
func testBounds(t *testing.T, f *fixture) {
	p := f.partition(0)
	b, err := p.Bounds(t.Context())
	if err != nil || !b.Empty() || b.First != 0 || b.Last() != eventlog.NoSequence || !b.LastTime.IsZero() {
		t.Errorf("a new partition: %+v, %v", b, err)
	}
	done := f.append(p, "a", "b")
	b, err = p.Bounds(t.Context())
	if err != nil || b.First != 0 || b.Next != 2 || !b.LastTime.Equal(done.Time) || b.Bytes <= 0 {
		t.Errorf("after two events: %+v, %v", b, err)
	}
}

func testApart(t *testing.T, f *fixture) {
	other, err := f.Partition(eventlog.PartitionID{Log: "orders-2", Number: 0}, eventlog.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	f.append(f.partition(0), "first")
	f.append(f.partition(1), "second")
	f.append(other, "third")
	f.wantRest(f.partition(0), eventlog.Earliest(), "first")
	f.wantRest(f.partition(1), eventlog.Earliest(), "second")
	f.wantRest(other, eventlog.Earliest(), "third")
}

func testOwnership(t *testing.T, f *fixture) {
	p := f.partition(0)
	b := eventlog.Batch{Events: []eventlog.Event{{Key: []byte("key"), Message: []byte("message")}}}
	r, err := p.Submit(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	copy(b.Events[0].Key, "XXX")
	copy(b.Events[0].Message, "XXXXXXX")
	if _, err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	run, err := f.cursor(p, eventlog.Earliest()).Next(t.Context())
	if err != nil || string(run.Events[0].Key) != "key" || string(run.Events[0].Message) != "message" {
		t.Errorf("got %+v, %v", run.Events, err)
	}
}

// H1
func testRemove(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "a")
	c, waiting := f.cursor(p, eventlog.Earliest()), f.cursor(p, eventlog.Latest())
	ended := make(chan error)
	go func() { _, err := waiting.Next(t.Context()); ended <- err }()
	for range 2 { // removing again is no error
		if err := f.Remove(t.Context(), "orders-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("a waiting cursor ended with %v", err)
	}
	if _, err := c.TryNext(t.Context()); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("an open cursor: %v", err)
	}
	if _, err := eventlog.Append(t.Context(), p, batchOf("b")); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("an append: %v", err)
	}
	if _, err := p.Bounds(t.Context()); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("bounds: %v", err)
	}
}

func testClose(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "a")
	c := f.cursor(p, eventlog.Latest())
	ended := make(chan error)
	go func() { _, err := c.Next(t.Context()); ended <- err }()
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a waiting cursor ended with %v", err)
	}
	if _, err := eventlog.Append(t.Context(), p, batchOf("b")); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("an append: %v", err)
	}
	if _, err := f.Partition(eventlog.PartitionID{Log: "x"}, eventlog.Retention{}); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a partition: %v", err)
	}
}

// H3, H10
func testReopen(t *testing.T, f *fixture) {
	p := f.partition(0)
	var want []string
	for i := range 300 {
		text := fmt.Sprintf("%d %s", i, bytes.Repeat([]byte("x"), i*7))
		f.append(p, text)
		want = append(want, text)
	}
	before, err := p.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.Engine = f.reopen()
	p = f.partition(0)
	after, err := p.Bounds(t.Context())
	if err != nil || after.First != before.First || after.Next != before.Next || !after.LastTime.Equal(before.LastTime) {
		t.Errorf("bounds %+v became %+v, %v", before, after, err)
	}
	f.wantRest(p, eventlog.Earliest(), want...)
	if done := f.append(p, "more"); done.First != 300 || done.Time.Before(before.LastTime) {
		t.Errorf("the next event got %d at %v", done.First, done.Time)
	}
	f.wantRest(p, eventlog.At(299), want[299], "more")
}

func testTrim(t *testing.T, f *fixture) {
	p := f.partition(0)
	for i := range 500 {
		f.append(p, fmt.Sprintf("%03d %s", i, bytes.Repeat([]byte("x"), 500)))
	}
	slow := f.cursor(p, eventlog.Earliest())
	if err := p.Trim(t.Context(), 400); err != nil {
		t.Fatal(err)
	}
	b, err := p.Bounds(t.Context())
	if err != nil || b.First > 400 || b.Next != 500 {
		t.Errorf("bounds %+v, %v: removed what was to stay", b, err)
	}
	got := f.rest(slow)
	if len(got) < 100 || got[len(got)-100][:3] != "400" {
		t.Errorf("an overtaken cursor reads %d events", len(got))
	}
	if got := f.rest(f.cursor(p, eventlog.At(0))); len(got) != int(b.Next-b.First) {
		t.Errorf("a removed number leads to %d events, want the %d kept", len(got), b.Next-b.First)
	}
}

// H4
func testRetention(t *testing.T, f *fixture) {
	const keep = 256 << 10
	p := f.keeping(0, eventlog.Retention{Bytes: keep})
	for i := range 1500 {
		f.append(p, fmt.Sprintf("%04d %s", i, bytes.Repeat([]byte("x"), 1000)))
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- f.Run(ctx) }()
	defer func() { stop(); <-ran }()
	var b eventlog.Bounds
	for b.First == 0 || b.Bytes > keep {
		var err error
		if b, err = p.Bounds(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if b.Next != 1500 || b.Empty() {
		t.Errorf("bounds %+v: retention must keep the newest", b)
	}
	got := f.rest(f.cursor(p, eventlog.Earliest()))
	if len(got) != int(b.Next-b.First) || got[0][:4] != fmt.Sprintf("%04d", b.First) {
		t.Errorf("%d events from %q, want those from %d on", len(got), got[0][:4], b.First)
	}
}

func testProducer(t *testing.T, f *fixture) {
	p := f.partition(0)
	b := batchOf("a", "b", "c")
	b.Producer = eventlog.Producer{ID: 77, Epoch: 3, First: 1000, Set: true}
	if _, err := eventlog.Append(t.Context(), p, b); err != nil {
		t.Fatal(err)
	}
	f.append(p, "d")
	c := f.cursor(p, eventlog.At(1))
	run, err := c.Next(t.Context())
	want := eventlog.Producer{ID: 77, Epoch: 3, First: 1001, Set: true}
	if err != nil || run.Producer != want {
		t.Errorf("got %+v, %v, want %+v", run.Producer, err, want)
	}
	if run, err := c.Next(t.Context()); err != nil || run.Producer != (eventlog.Producer{}) {
		t.Errorf("a batch without a producer has %+v, %v", run.Producer, err)
	}
}
