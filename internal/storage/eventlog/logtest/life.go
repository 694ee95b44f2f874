package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

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
	if _, err := f.Partition(eventlog.PartitionID{Log: "x"}); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a partition: %v", err)
	}
	if err := f.Provide(t.Context(), "x", eventlog.Shape{Partitions: 1}); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a log: %v", err)
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

// patience is how long something may take that is to come to an end by itself.
const patience = 30 * time.Second

// submitMany submits batches that nobody waits for yet.
func (f *fixture) submitMany(p eventlog.Partition) (receipts []eventlog.Receipt) {
	f.t.Helper()
	for i := range 20 {
		r, err := p.Submit(f.t.Context(), batchOf(fmt.Sprint(i)))
		if err != nil {
			f.t.Fatal(err)
		}
		receipts = append(receipts, r)
	}
	return receipts
}

// settled waits for receipts, each of which has to end well or with the given error. It
// gives the texts of those that ended well.
func (f *fixture) settled(receipts []eventlog.Receipt, or error) (stored []string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for i, r := range receipts {
		_, err := r.Wait(ctx)
		if err == nil {
			stored = append(stored, fmt.Sprint(i))
		} else if !errors.Is(err, or) {
			f.t.Fatalf("receipt %d ended with %v", i, err)
		}
	}
	return stored
}

// H2
func testReceiptsAtClose(t *testing.T, f *fixture) {
	receipts := f.submitMany(f.partition(0))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	stored := f.settled(receipts, eventlog.ErrClosed)
	f.Engine = f.reopen()
	if got := f.rest(f.cursor(f.partition(0), eventlog.Earliest())); !slices.Equal(got, stored) {
		t.Errorf("found %q, but %q were acknowledged", got, stored)
	}
}

// H2. What was acknowledged before the removal was stored, in its place; from the first batch on
// that was not, all are refused, since nobody had heard of it when they were submitted; and nothing
// can be stored any more.
func testReceiptsAtRemove(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "before")
	receipts := f.submitMany(p)
	testkit.Must(t, f.Remove(t.Context(), "orders-1"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	refused := false
	for i, r := range receipts {
		appended, err := r.Wait(ctx)
		switch {
		case errors.Is(err, eventlog.ErrRemoved):
			refused = true
		case err != nil:
			t.Errorf("receipt %d ended with %v", i, err)
		case refused:
			t.Errorf("receipt %d ended well behind one that was refused", i)
		case appended.First != eventlog.Sequence(i+1):
			t.Errorf("receipt %d says that event %d is the first", i, appended.First)
		}
	}
	if r, err := p.Submit(ctx, batchOf("after")); err == nil {
		_, err = r.Wait(ctx)
		t.Errorf("submitted after the removal: %v", err)
	} else if !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("refused after the removal with %v, want ErrRemoved", err)
	}
}

func testEveryCallAfterClose(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "a")
	c := f.cursor(p, eventlog.Earliest())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Remove":  func() error { return f.Remove(t.Context(), "orders-1") },
		"Bounds":  func() error { _, err := p.Bounds(t.Context()); return err },
		"Sealed":  func() error { _, err := p.Sealed(t.Context()); return err },
		"Claim":   func() error { _, err := p.Claim(t.Context(), 1); return err },
		"Cursor":  func() error { _, err := p.Cursor(t.Context(), eventlog.Earliest()); return err },
		"Since":   func() error { _, err := p.Cursor(t.Context(), eventlog.Since(time.Time{})); return err },
		"Trim":    func() error { return p.Trim(t.Context(), 1) },
		"Submit":  func() error { _, err := p.Submit(t.Context(), batchOf("b")); return err },
		"TryNext": func() error { _, err := c.TryNext(t.Context()); return err },
	} {
		if err := call(); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	f.Engine = f.reopen()
	f.wantRest(f.partition(0), eventlog.Earliest(), "a")
}

// testSeeking looks for a time again and again while the partition ends under it.
func testSeeking(t *testing.T, f *fixture) {
	for _, tt := range []struct {
		log  string
		end  func() error
		want error
	}{
		{"orders-1", func() error { return f.Remove(t.Context(), "orders-1") }, eventlog.ErrRemoved},
		{"orders-2", f.Close, eventlog.ErrClosed},
	} {
		f.provide(tt.log, eventlog.Shape{Partitions: 1})
		p := f.handle(tt.log, 0)
		for range 100 {
			f.append(p, string(bytes.Repeat([]byte("x"), 1000)))
		}
		seeking, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for first := true; ; first = false {
				c, err := p.Cursor(t.Context(), eventlog.Since(time.Time{}))
				if err != nil {
					ended <- err
					return
				}
				c.Close()
				if first {
					close(seeking)
				}
			}
		}()
		<-seeking
		if err := tt.end(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, tt.want) {
				t.Errorf("it ended with %v, want %v", err, tt.want)
			}
		case <-time.After(patience):
			t.Fatalf("the time is still being looked for, want %v", tt.want)
		}
	}
}
