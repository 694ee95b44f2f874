package logtest

import (
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// testSealed: sealed bounds hold all that was acknowledged, and sealing is nothing that readers see.
// // C1
func testSealed(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.wantSealed(p, 0)
	latest := f.cursor(p, eventlog.Latest())
	f.append(p, "a", "b")
	f.wantSealed(p, 2)
	f.append(p, "c")
	f.wantSealed(p, 3)
	if got := f.rest(latest); len(got) != 3 {
		t.Errorf("a reader got %q", got)
	}
	f.Engine = f.reopen()
	p = f.partition(0)
	b := f.wantSealed(p, 3)
	if after, err := p.Bounds(t.Context()); err != nil || after.Next != b.Next || !after.LastTime.Equal(b.LastTime) || after.First != b.First {
		t.Errorf("sealed %+v, then %+v, %v", b, after, err)
	}
	if done := f.append(p, "d"); done.First != 3 {
		t.Errorf("the next event got %d", done.First)
	}
	f.wantRest(p, eventlog.Earliest(), "a", "b", "c", "d")
}

func (f *fixture) wantSealed(p eventlog.Partition, next eventlog.Sequence) eventlog.Bounds {
	f.t.Helper()
	b, err := p.Sealed(f.t.Context())
	if err != nil || b.First != 0 || b.Next != next || b.LastTime.IsZero() != (next == 0) {
		f.t.Errorf("sealed %+v, %v, want %d events", b, err, next)
	}
	return b
}

// testPeek. // H10
func testPeek(t *testing.T, f *fixture) {
	p := f.partition(0)
	if b := p.Peek(); b != (eventlog.Bounds{}) {
		t.Errorf("before the first use: %+v", b)
	}
	for n := range eventlog.Sequence(5) {
		done := f.append(p, "x")
		if b := p.Peek(); b.First != 0 || b.Next != n+1 || !b.LastTime.Equal(done.Time) {
			t.Errorf("after event %d at %v: %+v", n, done.Time, b)
		}
	}
	last := p.Peek().LastTime
	f.Engine = f.reopen()
	p = f.partition(0)
	if run, err := f.cursor(p, eventlog.At(4)).Next(t.Context()); err != nil || run.Next() != 5 {
		t.Fatalf("%+v, %v", run, err)
	}
	if b := p.Peek(); b.Next != 5 || !b.LastTime.Equal(last) {
		t.Errorf("after reading: %+v", b)
	}
	if err := f.Remove(t.Context(), "orders-1"); err != nil {
		t.Fatal(err)
	}
	if b := p.Peek(); b.Next != 5 {
		t.Errorf("of a removed log: %+v", b)
	}
}
