package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

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

// H2
func testSubmitContext(t *testing.T, f *fixture) {
	p := f.partition(0)
	reason := errors.New("the sender went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	var want []string
	for i := range 20 {
		text := fmt.Sprint(i)
		r, err := p.Submit(ctx, batchOf(text))
		if err == nil {
			_, err = r.Wait(t.Context())
			want = append(want, text)
		} else if errors.Is(err, reason) {
			err = nil // nothing was stored
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f.append(p, "after")
	f.wantRest(p, eventlog.Earliest(), append(want, "after")...)
}

// testWaitContext: who stops waiting does not know, but its batch is there whole or not at
// all, and before everything that was submitted later. // H2
func testWaitContext(t *testing.T, f *fixture) {
	p := f.partition(0)
	reason := errors.New("the sender went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	known := map[string]bool{}
	for i := range 20 {
		r, err := p.Submit(t.Context(), batchOf(fmt.Sprint(i, " a"), fmt.Sprint(i, " b")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Wait(ctx); err != nil && !errors.Is(err, reason) {
			t.Fatalf("got %v, want the context's cause", err)
		}
		known[fmt.Sprint(i, " a")] = err == nil
		f.append(p, fmt.Sprint(i, " c"))
	}
	got := f.rest(f.cursor(p, eventlog.Earliest()))
	for i := range 20 {
		a, b, c := fmt.Sprint(i, " a"), fmt.Sprint(i, " b"), fmt.Sprint(i, " c")
		switch {
		case len(got) >= 3 && got[0] == a && got[1] == b && got[2] == c:
			got = got[3:]
		case !known[a] && len(got) >= 1 && got[0] == c:
			got = got[1:]
		default:
			t.Fatalf("batch %d: found %q", i, got[:min(3, len(got))])
		}
	}
	if len(got) != 0 {
		t.Errorf("left over: %q", got)
	}
}
