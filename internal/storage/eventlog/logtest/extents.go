package logtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// appendMixed appends frames and events of all sizes, some beyond what is small.
func (f *fixture) appendMixed(p eventlog.Partition, n int) {
	f.t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		size := rnd.IntN(400)
		if i%10 == 9 {
			size = 10<<10 + rnd.IntN(30<<10)
		}
		text := fmt.Sprintf("%d %s", i, bytes.Repeat([]byte("x"), size))
		if rnd.IntN(3) == 0 {
			f.append(p, text, "second")
		} else {
			frame := Opaque(1+rnd.IntN(5), text)
			if i%2 == 0 {
				frame.Producer = eventlog.Producer{ID: int64(i), Epoch: 3, First: int32(7 * i), Set: true}
			}
			f.appendBatch(p, frame)
		}
	}
}

// batches reads what is there one by one.
func (f *fixture) batches(p eventlog.Partition, at eventlog.Position) (extents []eventlog.Extent, texts []string) {
	f.t.Helper()
	c := f.cursor(p, at)
	defer c.Close()
	for {
		run, err := c.TryNext(f.t.Context())
		testkit.Must(f.t, err)
		if run.Len() == 0 {
			return extents, texts
		}
		extents = append(extents, extentOf(run))
		texts = append(texts, fmt.Sprint(f.show(run)))
	}
}

func extentOf(run eventlog.Run) eventlog.Extent {
	e := eventlog.Extent{First: run.First, Form: run.Form, Count: run.Count, Skip: run.Skip, Producer: run.Producer}
	e.Bytes = eventlog.Batch{Events: run.Events, Raw: run.Raw}.Bytes()
	if run.Form == eventlog.FormEvents {
		e.Count = run.Len()
	}
	return e
}

// fitting is how many of them measure at most max bytes, but at least one.
func fitting(extents []eventlog.Extent, max int) int {
	for i, e := range extents {
		if max -= e.Bytes; max < 0 && i > 0 {
			return i
		}
	}
	return len(extents)
}

// testExtents: headers tell what is read then, over the ends of segments, and nothing moves. // K1
func testExtents(t *testing.T, f *fixture) {
	p := f.partition(0)
	c := f.cursor(p, eventlog.Earliest())
	testkit.Slices(t, testkit.Value(c.Extents(t.Context(), nil, 1<<20))(t), nil, "of nothing")
	f.appendMixed(p, 150)
	all, _ := f.batches(p, eventlog.Earliest())
	for i := 0; i < len(all); i += 13 {
		c := f.cursor(p, eventlog.At(all[i].First))
		for _, max := range []int{0, 1, 700, 5000, 100 << 10, 16 << 20} {
			before := []eventlog.Extent{{First: 4711}}
			got := testkit.Value(c.Extents(t.Context(), before, max))(t)
			testkit.Slices(t, got, append(before, all[i:i+fitting(all[i:], max)]...), "from %d, at most %d bytes", i, max)
			testkit.Equal(t, c.At(), all[i].First, "where the cursor stands")
		}
		run := testkit.Value(c.Next(t.Context()))(t)
		testkit.Equal(t, extentOf(run), all[i], "what is read then")
	}
}

// testExtentsInside: from inside a frame, and of events that come while a cursor stands still. // K1
func testExtentsInside(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "0", "1", "2")
	f.appendBatch(p, Opaque(5, "frame"))
	c := f.cursor(p, eventlog.At(1))
	want := []eventlog.Extent{{First: 1, Count: 3, Skip: 1, Bytes: 27}, {First: 3, Form: FormOpaque, Count: 5, Bytes: 21}}
	testkit.Slices(t, testkit.Value(c.Extents(t.Context(), nil, 1000))(t), want)
	f.append(p, "8")
	want = append(want, eventlog.Extent{First: 8, Count: 1, Bytes: 9})
	testkit.Slices(t, testkit.Value(c.Extents(t.Context(), nil, 1000))(t), want, "when more has come")
	c = f.cursor(p, eventlog.At(6))
	want = []eventlog.Extent{{First: 6, Form: FormOpaque, Count: 5, Skip: 3, Bytes: 21}, want[2]}
	testkit.Slices(t, testkit.Value(c.Extents(t.Context(), nil, 1000))(t), want, "from inside a frame")
	testkit.Equal(t, want[0].Next(), 8)
}

// testTryNextAll: many runs at once are what one by one would be, all valid together. // K1
func testTryNextAll(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.appendMixed(p, 150)
	extents, texts := f.batches(p, eventlog.Earliest())
	for _, max := range []int{0, 300, 4 << 10, 64 << 10, 1 << 20} {
		c := f.cursor(p, eventlog.Earliest())
		at := 0
		for calls := 0; ; calls++ {
			before := []eventlog.Run{{First: 4711}}
			runs := testkit.Value(c.TryNextAll(t.Context(), before, max))(t)
			testkit.MustEqual(t, runs[0].First, 4711, "what was there")
			if runs = runs[1:]; len(runs) == 0 {
				testkit.Equal(t, at, len(texts), "batches read")
				testkit.That(t, max < 64<<10 || calls < len(texts)/2, "%d calls for %d batches", calls, len(texts))
				break
			}
			testkit.That(t, len(runs) <= fitting(extents[at:], max), "%d runs at once are more than %d bytes", len(runs), max)
			for _, run := range runs {
				testkit.MustEqual(t, fmt.Sprint(f.show(run)), texts[at], "batch %d", at)
				at++
			}
			testkit.Equal(t, c.At(), runs[len(runs)-1].Next(), "where the cursor stands")
			if calls%3 == 0 {
				c.Rest() // which changes nothing
			}
		}
	}
}

// testExtentsAfterTheEnd: they say what is wrong as TryNext does.
func testExtentsAfterTheEnd(t *testing.T, f *fixture) {
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
		f.append(p, "a")
		c := f.cursor(p, eventlog.Earliest())
		testkit.Must(t, testkit.Err(c.Extents(t.Context(), nil, 100)))
		testkit.Must(t, tt.end())
		for name, call := range map[string]func(context.Context) error{
			"Extents":    func(ctx context.Context) error { return testkit.Err(c.Extents(ctx, nil, 100)) },
			"TryNextAll": func(ctx context.Context) error { return testkit.Err(c.TryNextAll(ctx, nil, 100)) },
		} {
			testkit.ErrorIs(t, call(t.Context()), tt.want, name)
		}
		c.Rest()
	}
}
