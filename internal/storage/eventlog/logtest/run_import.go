package logtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// RunImport is the suite of partitions that implement eventlog.Importer: what one engine holds comes
// into another as it was. Both are fresh for each test.
func RunImport(t *testing.T, from, to Open) {
	tests := []struct {
		name string
		run  func(t *testing.T, from, to *fixture)
	}{
		{"numbers, times and producers stay as they were", testCopy},
		{"a log that lost its beginning begins where it was", testCopyTrimmed},
		{"a log that lost all goes on with its numbers", testCopyEmpty},
		{"a log that was never used stays so", testCopyNothing},
		{"what was interrupted goes on", testCopyResumes},
		{"gaps, repeats and older times are refused", testImportRefuses},
		{"a partition that was used begins nowhere else", testBeginRefuses},
		{"it is not copied over something else", testCopyRefuses},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source, reopenSource := from(t)
			target, reopenTarget := to(t)
			tt.run(t, &fixture{t: t, Engine: source, reopen: reopenSource}, &fixture{t: t, Engine: target, reopen: reopenTarget})
		})
	}
}

// fillMixed appends batches of all kinds: with keys, with producers, large and small, and frames.
func (f *fixture) fillMixed(p eventlog.Partition, n int) {
	f.t.Helper()
	for i := range n {
		var b eventlog.Batch
		for j := range 1 + i%4 {
			e := eventlog.Event{Message: []byte(fmt.Sprintf("%d/%d %0*d", i, j, i%7*100, i))}
			if j%2 == 1 {
				e.Key = []byte(fmt.Sprintf("key %d", i))
			}
			b.Events = append(b.Events, e)
		}
		if i%5 == 4 {
			b = eventlog.Batch{Form: FormOpaque, Raw: []byte(fmt.Sprintf("frame %d", i)), Count: len(b.Events), MaxTime: time.UnixMilli(int64(1000 + i))}
		}
		if i%3 == 0 {
			b.Producer = eventlog.Producer{ID: int64(i) - 5, Epoch: int16(i % 5), First: int32(10 * i), Set: true}
		}
		if _, err := eventlog.Append(f.t.Context(), p, b); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) copyFrom(from, to eventlog.Partition, want int64) {
	f.t.Helper()
	if n, err := eventlog.Copy(f.t.Context(), from, to); err != nil || n != want {
		f.t.Fatalf("copied %d events, %v, want %d", n, err, want)
	}
}

// runs gives what a partition holds, as text.
func runsOf(t *testing.T, p eventlog.Partition) (all []string) {
	t.Helper()
	c, err := p.Cursor(t.Context(), eventlog.Earliest())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		run, err := c.TryNext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if run.Len() == 0 {
			return all
		}
		all = append(all, fmt.Sprintf("%d %d %+v %q %v %q %d %d", run.First, run.Time.UnixMilli(), run.Producer, run.Events,
			run.Form, run.Raw, run.Count, run.MaxTime.UnixMilli()))
	}
}

// WantAlike wants two partitions to hold the same, but for the room that it takes.
func WantAlike(t *testing.T, from, to eventlog.Partition) {
	t.Helper()
	a, err := from.Bounds(t.Context())
	b, other := to.Bounds(t.Context())
	if err != nil || other != nil || a.First != b.First || a.Next != b.Next || !a.LastTime.Equal(b.LastTime) {
		t.Fatalf("bounds %+v, %v became %+v, %v", a, err, b, other)
	}
	if was, is := runsOf(t, from), runsOf(t, to); !slices.Equal(was, is) {
		t.Fatalf("%d batches became %d, or others", len(was), len(is))
	}
}

// C7
func testCopy(t *testing.T, from, to *fixture) {
	source := from.partition(0)
	from.fillMixed(source, 200)
	b, err := source.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	target := to.partition(0)
	to.copyFrom(source, target, int64(b.Next))
	WantAlike(t, source, target)
	to.copyFrom(source, target, 0) // once more
	to.Engine = to.reopen()
	target = to.partition(0)
	WantAlike(t, source, target)
	if done := to.append(target, "new"); done.First != b.Next || done.Time.Before(b.LastTime) {
		t.Errorf("the next event got %d at %v", done.First, done.Time)
	}
	to.wantRest(target, eventlog.At(b.Next), "new")
}

// trimmed has a partition that begins behind its first events.
func (f *fixture) trimmed(below eventlog.Sequence) (eventlog.Partition, eventlog.Bounds) {
	f.t.Helper()
	p := f.partition(0)
	f.fillMixed(p, 300)
	f.runs()
	if err := p.Trim(f.t.Context(), below); err != nil {
		f.t.Fatal(err)
	}
	return p, f.until(p, func(b eventlog.Bounds) bool { return b.First > 0 })
}

// C7
func testCopyTrimmed(t *testing.T, from, to *fixture) {
	source, b := from.trimmed(500)
	target := to.partition(0)
	to.copyFrom(source, target, int64(b.Next-b.First))
	WantAlike(t, source, target)
	to.Engine = to.reopen()
	WantAlike(t, source, to.partition(0))
}

// C7
func testCopyEmpty(t *testing.T, from, to *fixture) {
	source := from.keeping(0, eventlog.Retention{Age: 50 * time.Millisecond})
	from.fillMixed(source, 10)
	from.runs()
	b := from.until(source, eventlog.Bounds.Empty)
	target := to.partition(0)
	to.copyFrom(source, target, 0)
	WantAlike(t, source, target)
	to.Engine = to.reopen()
	target = to.partition(0)
	WantAlike(t, source, target)
	if done := to.append(target, "new"); done.First != b.Next || done.Time.Before(b.LastTime) {
		t.Errorf("the next event got %d at %v", done.First, done.Time)
	}
}

func testCopyNothing(t *testing.T, from, to *fixture) {
	target := to.partition(0)
	to.copyFrom(from.partition(0), target, 0)
	if done := to.append(target, "new"); done.First != 0 {
		t.Errorf("the first event got %d", done.First)
	}
}

// testCopyResumes imports a part, once with nothing but the beginning. // C7
func testCopyResumes(t *testing.T, from, to *fixture) {
	source, b := from.trimmed(500)
	target := to.partition(0)
	if err := target.(eventlog.Importer).BeginAt(t.Context(), b.First, time.Time{}); err != nil {
		t.Fatal(err)
	}
	to.Engine = to.reopen()
	target = to.partition(0)
	if sealed, err := target.Sealed(t.Context()); err != nil || sealed.First != b.First || sealed.Next != b.First {
		t.Fatalf("after the beginning %+v, %v, want %d", sealed, err, b.First)
	}
	c := from.cursor(source, eventlog.Earliest())
	for range 20 {
		if err := importNext(t.Context(), c, target); err != nil {
			t.Fatal(err)
		}
	}
	to.Engine = to.reopen()
	target = to.partition(0)
	to.copyFrom(source, target, int64(b.Next-c.At()))
	WantAlike(t, source, target)
}

func importNext(ctx context.Context, c eventlog.Cursor, to eventlog.Partition) error {
	run, err := c.TryNext(ctx)
	if err != nil {
		return err
	}
	r, err := to.(eventlog.Importer).Import(ctx, run)
	if err == nil {
		_, err = r.Wait(ctx)
	}
	return err
}

func testImportRefuses(t *testing.T, _, to *fixture) {
	p := to.partition(0)
	last := to.append(p, "a", "b")
	run := func(first eventlog.Sequence, at time.Time) eventlog.Run {
		return eventlog.Run{First: first, Time: at, Events: batchOf("x").Events}
	}
	for what, run := range map[string]eventlog.Run{
		"a gap":         run(3, last.Time),
		"a repeat":      run(0, last.Time),
		"the last one":  run(1, last.Time),
		"an older time": run(2, last.Time.Add(-time.Millisecond)),
		"no events":     {First: 2, Time: last.Time},
	} {
		if _, err := p.(eventlog.Importer).Import(t.Context(), run); err == nil {
			t.Errorf("%s is imported", what)
		}
	}
	to.wantRest(p, eventlog.Earliest(), "a", "b")
	unused := to.partition(1)
	if _, err := unused.(eventlog.Importer).Import(t.Context(), run(5, last.Time)); err == nil {
		t.Error("a partition begins somewhere by itself")
	}
	if err := unused.(eventlog.Importer).BeginAt(t.Context(), 5, time.Time{}); err != nil {
		t.Errorf("and after it was refused: %v", err)
	}
}

func testBeginRefuses(t *testing.T, _, to *fixture) {
	used, begun := to.partition(0), to.partition(1)
	to.append(used, "a")
	if err := begun.(eventlog.Importer).BeginAt(t.Context(), 7, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, first := range []eventlog.Sequence{-1, 0, 1, 7, 8} {
		for _, p := range []eventlog.Partition{used, begun} {
			if err := p.(eventlog.Importer).BeginAt(t.Context(), first, time.Time{}); err == nil {
				t.Errorf("one that was used begins at %d", first)
			}
		}
	}
	to.wantRest(used, eventlog.Earliest(), "a")
	if done := to.append(begun, "b"); done.First != 7 {
		t.Errorf("the first event got %d", done.First)
	}
}

func testCopyRefuses(t *testing.T, from, to *fixture) {
	source, target := from.partition(0), to.partition(0)
	from.append(source, "a")
	to.append(target, "x", "y")
	if n, err := eventlog.Copy(t.Context(), source, target); err == nil || n > 0 {
		t.Errorf("%d events are copied behind others", n)
	}
	trimmed, _ := (&fixture{t: t, Engine: from.Engine}).trimmed(500)
	if n, err := eventlog.Copy(t.Context(), trimmed, target); err == nil || n > 0 {
		t.Errorf("%d events are copied behind a gap", n)
	}
	to.wantRest(target, eventlog.Earliest(), "x", "y")
}
