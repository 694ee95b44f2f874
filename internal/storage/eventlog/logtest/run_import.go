package logtest

import (
	"context"
	"errors"
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
		{"numbers that are left out are reported as lost", testSkip},
		{"what cannot leave out numbers says so", testSkipRefuses},
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

// second is the nth of a time that is past.
func second(n eventlog.Sequence) time.Time { return time.Unix(1_700_000_000+int64(n), 0) }

// importAt imports events, each of the second of its number.
func (f *fixture) importAt(p eventlog.Partition, from, to eventlog.Sequence) {
	f.t.Helper()
	for at := from; at < to; at++ {
		run := eventlog.Run{First: at, Time: second(at), Events: batchOf(fmt.Sprint(at)).Events}
		r, err := p.(eventlog.Importer).Import(f.t.Context(), run)
		if err == nil {
			_, err = r.Wait(f.t.Context())
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) skipTo(p eventlog.Partition, next eventlog.Sequence) {
	f.t.Helper()
	if err := p.(eventlog.Skipper).SkipTo(f.t.Context(), next); err != nil {
		f.t.Fatal(err)
	}
}

// Readable gives what can be read of a partition from a position on, and the numbers that cannot.
func Readable(t testing.TB, p eventlog.Partition, at eventlog.Position) (all []string) {
	t.Helper()
	for {
		c, err := p.Cursor(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		var run eventlog.Run
		for err == nil {
			if run, err = c.TryNext(t.Context()); err == nil && run.Len() == 0 {
				_ = c.Close()
				return all
			}
			for i, e := range run.Events {
				all = append(all, fmt.Sprintf("%d %s", run.First+eventlog.Sequence(i), e.Message))
			}
		}
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		if !ok || damage.Next <= c.At() {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("no %d to %d", damage.First, damage.Next-1))
		at = eventlog.At(damage.Next)
		_ = c.Close()
	}
}

// C7
func testSkip(t *testing.T, _, to *fixture) {
	p := to.partition(0)
	want := func(at eventlog.Position, next eventlog.Sequence, want ...string) {
		t.Helper()
		if b, err := p.Bounds(t.Context()); err != nil || b.First != 0 || b.Next != next {
			t.Fatalf("bounds %+v, %v, want the next to be %d", b, err, next)
		}
		if got := Readable(t, p, at); !slices.Equal(got, want) {
			t.Fatalf("from %v read %q, want %q", at, got, want)
		}
	}
	to.importAt(p, 0, 3)
	c := to.cursor(p, eventlog.At(2))
	if run, err := c.TryNext(t.Context()); err != nil || run.Len() != 1 {
		t.Fatalf("read %d events, %v", run.Len(), err)
	}
	to.skipTo(p, 10)
	_, err := c.TryNext(t.Context())
	if damage, ok := errors.AsType[*eventlog.CorruptError](err); !ok || damage.First != 3 || damage.Next != 10 {
		t.Fatalf("who was there before reads on with %v", err)
	}
	want(eventlog.At(1), 10, "1 1", "2 2", "no 3 to 9")
	to.importAt(p, 10, 12)
	for range 2 {
		want(eventlog.At(2), 12, "2 2", "no 3 to 9", "10 10", "11 11")
		want(eventlog.At(5), 12, "no 5 to 9", "10 10", "11 11")
		want(eventlog.At(10), 12, "10 10", "11 11")
		want(eventlog.Since(second(3)), 12, "10 10", "11 11")
		want(eventlog.Since(second(11)), 12, "11 11")
		want(eventlog.SinceCreated(second(10)), 12, "10 10", "11 11")
		want(eventlog.GreatestCreated(), 12, "11 11")
		to.Engine = to.reopen()
		p = to.partition(0)
	}
	to.skipTo(p, 20) // at the end, too
	want(eventlog.At(11), 20, "11 11", "no 12 to 19")
	to.Engine = to.reopen()
	p = to.partition(0)
	if done := to.append(p, "next"); done.First != 20 {
		t.Errorf("the next event got %d", done.First)
	}
	want(eventlog.At(2), 21, "2 2", "no 3 to 9", "10 10", "11 11", "no 12 to 19", "20 next")
}

func testSkipRefuses(t *testing.T, _, to *fixture) {
	p := to.partition(0)
	refuses := func(all ...eventlog.Sequence) {
		t.Helper()
		for _, next := range all {
			if err := p.(eventlog.Skipper).SkipTo(t.Context(), next); err == nil {
				t.Errorf("it skips to %d", next)
			}
		}
	}
	refuses(-1, 0, 5)
	to.append(p, "a", "b", "c")
	refuses(0, 2, 3)
	to.wantRest(p, eventlog.Earliest(), "a", "b", "c")
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
