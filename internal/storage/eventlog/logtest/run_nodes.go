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

// RunNodes is the suite of engines whose storage several processes share. open gives two over one
// storage that is fresh, as two processes would have them; the test's clean-up closes them.
func RunNodes(t *testing.T, open func(t *testing.T) (a, b eventlog.Engine)) {
	tests := []struct {
		name string
		run  func(t *testing.T, a, b *fixture)
	}{
		{"what is appended here is read there", testAppendHere},
		{"a cursor there begins where it is told to", testPositionsThere},
		{"rivals: numbers are dense and alike, each writer's order holds", testRivals},
		{"sealed bounds there hold what was acknowledged here", testSealedThere},
		{"bounds and what is known follow", testBoundsThere},
		{"a claim there ends the one here", testClaims},
		{"a claim is void for what is still under way", testClaimUnderWay},
		{"claimants who take turns store each number once", testClaimants},
		{"what was trimmed here is gone there", testTrimHere},
		{"retention there is as of the newest call here", testRetentionHere},
		{"a log that was removed here is gone there, and stays so", testRemovedHere},
		{"one that is closed leaves the other alone", testClosedHere},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := open(t)
			tt.run(t, &fixture{t: t, Engine: a}, &fixture{t: t, Engine: b})
		})
	}
}

// nextTexts reads n events, waiting for them.
func (f *fixture) nextTexts(c eventlog.Cursor, n int) (texts []string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for len(texts) < n {
		run, err := c.Next(ctx)
		if err != nil {
			f.t.Fatalf("after %q: %v", texts, err)
		}
		for _, e := range run.Events {
			texts = append(texts, string(e.Message))
		}
	}
	return texts
}

func (f *fixture) wantNext(c eventlog.Cursor, want ...string) {
	f.t.Helper()
	if got := f.nextTexts(c, len(want)); !slices.Equal(got, want) {
		f.t.Errorf("got %q, want %q", got, want)
	}
}

// C1
func testAppendHere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	waiting := b.cursor(there, eventlog.Earliest())
	got := make(chan eventlog.Run, 1)
	go func() {
		run, err := waiting.Next(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- run
	}()
	done := a.append(here, "a", "b")
	select {
	case run := <-got:
		if run.First != done.First || !run.Time.Equal(done.Time) || len(run.Events) != 2 {
			t.Errorf("stored %+v, read %+v", done, run)
		}
	case <-time.After(patience):
		t.Fatal("nobody was woken there")
	}
	woken := make(chan struct{})
	stop := waiting.Await(func() { close(woken) })
	defer stop()
	if done := b.append(there, "c"); done.First != 2 {
		t.Errorf("the next event got %d", done.First)
	}
	select {
	case <-woken:
	case <-time.After(patience):
		t.Error("who waits without a goroutine was not woken")
	}
	a.wantNext(a.cursor(here, eventlog.Earliest()), "a", "b", "c")
}

// testPositionsThere: positions are those of all that was acknowledged, to whomever. // C1, C2
func testPositionsThere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	for n := range eventlog.Sequence(20) {
		a.append(here, fmt.Sprint(n))
		latest := b.cursor(there, eventlog.Latest())
		if latest.At() != n+1 {
			t.Fatalf("after event %d here the latest there is %d", n, latest.At())
		}
		b.wantNext(b.cursor(there, eventlog.At(n)), fmt.Sprint(n))
		if c := b.cursor(there, eventlog.After(n)); c.At() != n+1 {
			t.Fatalf("after event %d a cursor stands at %d", n, c.At())
		}
	}
	_, err := there.Cursor(t.Context(), eventlog.At(21))
	if ahead, ok := errors.AsType[*eventlog.PositionError](err); !ok || ahead.Last != 19 {
		t.Errorf("past the end: %v", err)
	}
}

// C2
func testRivals(t *testing.T, a, b *fixture) {
	const writers, each = 4, 50
	parts := []eventlog.Partition{a.partition(0), b.partition(0)}
	var wg sync.WaitGroup
	stored := make([]map[eventlog.Sequence]string, 2*writers)
	for w := range stored {
		stored[w] = make(map[eventlog.Sequence]string)
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d/%d", w, i)
				done, err := eventlog.Append(t.Context(), parts[w%2], batchOf(text, text+"+"))
				if err != nil {
					t.Error(err)
					return
				}
				stored[w][done.First], stored[w][done.First+1] = text, text+"+"
			}
		})
	}
	wg.Wait()
	total := 2 * writers * each * 2
	here := a.nextTexts(a.cursor(parts[0], eventlog.Earliest()), total)
	if there := b.nextTexts(b.cursor(parts[1], eventlog.Earliest()), total); !slices.Equal(here, there) {
		t.Fatal("the two read differently")
	}
	next := make([]int, 2*writers)
	for n, text := range here {
		var w, i int
		fmt.Sscanf(text, "%d/%d", &w, &i)
		if i != next[w]/2 {
			t.Fatalf("event %d is %q, where batch %d of that writer should be", n, text, next[w]/2)
		}
		next[w]++
		if got := stored[w][eventlog.Sequence(n)]; got != text {
			t.Fatalf("event %d is %q, and was acknowledged as %q", n, text, got)
		}
	}
}

// C1
func testSealedThere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	b.wantSealed(there, 0)
	for n := range eventlog.Sequence(20) {
		a.append(here, "x")
		b.wantSealed(there, n+1)
	}
	if _, err := there.Bounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := there.Peek(); p.Next != 20 {
		t.Errorf("after sealing it knows %+v", p)
	}
}

func testBoundsThere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	done := a.append(here, "a", "b")
	got := b.until(there, func(b eventlog.Bounds) bool { return b.Next == 2 })
	if got.First != 0 || !got.LastTime.Equal(done.Time) {
		t.Errorf("bounds %+v after %+v", got, done)
	}
	b.wantNext(b.cursor(there, eventlog.Earliest()), "a", "b")
	if p := there.Peek(); p.Next != 2 || !p.LastTime.Equal(done.Time) {
		t.Errorf("after reading it knows %+v", p)
	}
}

// C2
func testClaims(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	nodes, parts := []*fixture{a, b}, []eventlog.Partition{here, there}
	var old eventlog.Claim
	next := eventlog.Sequence(0)
	for round := range 6 {
		me, other := round%2, 1-round%2
		c := nodes[me].claim(parts[me], 7)
		if c.Next < next {
			t.Fatalf("round %d: claimed up to %d, stored were %d", round, c.Next, next)
		}
		if round > 0 {
			_, err := eventlog.Append(t.Context(), parts[other], claimed(7, old, 100, "fenced"))
			if !errors.Is(err, eventlog.ErrFenced) {
				t.Fatalf("round %d: who lost its claim hears %v", round, err)
			}
		}
		for range 3 {
			if _, err := eventlog.Append(t.Context(), parts[me], claimed(7, c, int32(next), fmt.Sprint(next))); err != nil {
				t.Fatalf("round %d: who has the claim hears %v", round, err)
			}
			next++
		}
		old = c
	}
	// Others are not concerned, nor is who has no producer.
	for i, p := range parts {
		c := nodes[i].claim(p, int64(100+i))
		if _, err := eventlog.Append(t.Context(), p, claimed(int64(100+i), c, 0, "other")); err != nil {
			t.Error(err)
		}
		nodes[i].append(p, "plain")
	}
	for i, p := range parts {
		got := nodes[i].nextTexts(nodes[i].cursor(p, eventlog.Earliest()), int(next)+4)
		if slices.Contains(got, "fenced") || len(got) != int(next)+4 {
			t.Errorf("node %d reads %q", i, got)
		}
	}
}

// testClaimUnderWay claims while the other has batches under way: each lies below the claim's Next or
// is refused. // C2
func testClaimUnderWay(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	for round := range 10 {
		mine := a.claim(here, 7)
		var receipts []eventlog.Receipt
		for i := range 8 {
			r, err := here.Submit(t.Context(), claimed(7, mine, int32(i), fmt.Sprintf("%d/%d", round, i)))
			if err != nil {
				t.Fatal(err)
			}
			receipts = append(receipts, r)
		}
		ended := make(chan eventlog.Sequence)
		go func() {
			last := eventlog.NoSequence
			for _, r := range receipts {
				done, err := r.Wait(t.Context())
				if err == nil {
					last = done.First
				} else if !errors.Is(err, eventlog.ErrFenced) {
					t.Errorf("a batch under way: %v", err)
				}
			}
			ended <- last
		}()
		c := b.claim(there, 7)
		if last := <-ended; last >= c.Next {
			t.Fatalf("round %d: claimed up to %d, and %d was stored under the claim before", round, c.Next, last)
		}
	}
}

// testClaimants has both store the numbers of one producer, each as often as it can: it claims, reads
// what there is, and appends what is next, some in a row. // C2
func testClaimants(t *testing.T, a, b *fixture) {
	const total = 60
	var wg sync.WaitGroup
	for _, f := range []*fixture{a, b} {
		p := f.partition(0)
		wg.Go(func() {
			for {
				c, err := p.Claim(t.Context(), 7)
				if err != nil {
					t.Error(err)
					return
				}
				next, err := countBelow(t.Context(), p, c.Next)
				for range 5 {
					if err == nil && next < total {
						_, err = eventlog.Append(t.Context(), p, claimed(7, c, int32(next), fmt.Sprint(next)))
						next++
					}
				}
				switch {
				case errors.Is(err, eventlog.ErrFenced): // the other's turn
				case err != nil:
					t.Error(err)
					return
				case next >= total:
					return
				}
			}
		})
	}
	wg.Wait()
	p := a.partition(0)
	a.wantSealed(p, total)
	for n, text := range a.nextTexts(a.cursor(p, eventlog.Earliest()), total) {
		if text != fmt.Sprint(n) {
			t.Fatalf("event %d is %q", n, text)
		}
	}
}

// countBelow reads up to a number and counts.
func countBelow(ctx context.Context, p eventlog.Partition, next eventlog.Sequence) (n int, err error) {
	c, err := p.Cursor(ctx, eventlog.Earliest())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for c.At() < next {
		run, err := c.Next(ctx)
		if err != nil {
			return n, err
		}
		n += len(run.Events)
	}
	return n, nil
}

func testTrimHere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	a.append(here, "a", "b")
	b.append(there, "c")
	if err := here.Trim(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	a.runs()
	b.runs()
	b.until(there, func(b eventlog.Bounds) bool { return b.Next == 3 }) // what is kept of it is the engine's affair
	if done := b.append(there, "d"); done.First != 3 {
		t.Errorf("the next event got %d", done.First)
	}
	a.wantNext(a.cursor(here, eventlog.At(3)), "d")
}

// H4
func testRetentionHere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	b.append(there, "a")
	a.runs()
	b.runs()
	a.provide("orders-1", eventlog.Shape{Partitions: 4, Retention: eventlog.Retention{Age: 50 * time.Millisecond}})
	for _, p := range []eventlog.Partition{here, there} {
		if got := b.until(p, eventlog.Bounds.Empty); got.Next != 1 {
			t.Errorf("bounds %+v: the numbers are to stay", got)
		}
	}
}

// testRemovedHere: also where the other node has not used the log before, or not heard of it.
func testRemovedHere(t *testing.T, a, b *fixture) {
	here, there, unused := a.partition(0), b.partition(0), b.partition(1)
	a.append(here, "a")
	b.append(there, "b")
	waiting, ended := b.cursor(there, eventlog.Latest()), make(chan error, 1)
	go func() { _, err := waiting.Next(t.Context()); ended <- err }()
	if err := a.Remove(t.Context(), "orders-1"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, eventlog.ErrRemoved) {
			t.Errorf("a waiting cursor ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("a waiting cursor has not ended")
	}
	for _, p := range []eventlog.Partition{there, unused} {
		if _, err := eventlog.Append(t.Context(), p, batchOf("x")); !errors.Is(err, eventlog.ErrRemoved) {
			t.Errorf("an append: %v", err)
		}
	}
	if _, err := b.Partition(eventlog.PartitionID{Log: "orders-1"}); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("a partition: %v", err)
	}
	if err := b.Provide(t.Context(), "orders-1", eventlog.Shape{Partitions: 4}); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("the log is provided: %v", err)
	}
	if err := b.Remove(t.Context(), "orders-1"); err != nil {
		t.Errorf("removed once more: %v", err)
	}
}

func testClosedHere(t *testing.T, a, b *fixture) {
	here, there := a.partition(0), b.partition(0)
	a.append(here, "a")
	waiting, ended := a.cursor(here, eventlog.Latest()), make(chan error, 1)
	go func() { _, err := waiting.Next(t.Context()); ended <- err }()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a waiting cursor ended with %v", err)
	}
	if _, err := eventlog.Append(t.Context(), here, batchOf("x")); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("an append: %v", err)
	}
	if done := b.append(there, "b"); done.First != 1 {
		t.Errorf("the next event got %d", done.First)
	}
	b.wantNext(b.cursor(there, eventlog.Earliest()), "a", "b")
}
