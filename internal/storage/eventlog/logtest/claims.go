package logtest

import (
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// claimed is a batch of a producer's numbers from first on.
func claimed(producer int64, c eventlog.Claim, first int32, texts ...string) eventlog.Batch {
	b := batchOf(texts...)
	b.Producer = eventlog.Producer{ID: producer, First: first, Set: true}
	b.Claim = c
	return b
}

func (f *fixture) claim(p eventlog.Partition, producer int64) eventlog.Claim {
	f.t.Helper()
	c, err := p.Claim(f.t.Context(), producer)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// testClaim. // C2
func testClaim(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "plain")
	for first := range int32(4) {
		c := f.claim(p, 7)
		if b, err := p.Sealed(t.Context()); err != nil || c.Next != b.Next {
			t.Errorf("claimed up to %d, sealed %+v, %v", c.Next, b, err)
		}
		done, err := eventlog.Append(t.Context(), p, claimed(7, c, 2*first, "a"))
		if err != nil || done.First != eventlog.Sequence(1+2*first) {
			t.Fatalf("got %+v, %v", done, err)
		}
		if _, err := eventlog.Append(t.Context(), p, claimed(7, c, 2*first+1, "b")); err != nil {
			t.Fatal(err)
		}
	}
	other := f.claim(p, -7)
	if _, err := eventlog.Append(t.Context(), p, claimed(-7, other, 0, "other")); err != nil {
		t.Fatal(err)
	}
	f.Engine = f.reopen()
	p = f.partition(0)
	if c := f.claim(p, 7); c.Next != 10 {
		t.Errorf("after a start it is claimed up to %d", c.Next)
	}
}
