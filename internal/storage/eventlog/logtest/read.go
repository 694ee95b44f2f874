package logtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

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
	f.provide("orders-2", eventlog.Shape{Partitions: 1})
	other := f.handle("orders-2", 0)
	f.append(f.partition(0), "first")
	f.append(f.partition(1), "second")
	f.append(other, "third")
	f.wantRest(f.partition(0), eventlog.Earliest(), "first")
	f.wantRest(f.partition(1), eventlog.Earliest(), "second")
	f.wantRest(other, eventlog.Earliest(), "third")
}

// testAwait: who waits without a goroutine is woken once, by what comes and by the end.
func testAwait(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "0")
	woken := make(chan string, 10)
	await := func(who string, at eventlog.Position) (stop func()) {
		c := f.cursor(p, at)
		stop = c.Await(func() { woken <- who })
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return stop
	}
	await("there", eventlog.Earliest())
	if got := <-woken; got != "there" {
		t.Fatalf("%s was woken", got)
	}
	stopped := await("stopped", eventlog.Latest())
	late := await("late", eventlog.Latest())
	stopped()
	f.append(p, "1")
	if got := <-woken; got != "late" {
		t.Fatalf("%s was woken", got)
	}
	late() // too late, which does no harm
	f.append(p, "2")
	await("removed", eventlog.Latest())
	if err := f.Remove(t.Context(), "orders-1"); err != nil {
		t.Fatal(err)
	}
	if got := <-woken; got != "removed" {
		t.Fatalf("%s was woken", got)
	}
	if len(woken) > 0 {
		t.Errorf("%s was woken, too", <-woken)
	}
}
