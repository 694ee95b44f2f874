package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C4: the contract of Bodies, for each kind of them.
func TestBodiesContract(t *testing.T) {
	kinds := map[string]func(t *testing.T) Bodies{
		"files": func(t *testing.T) Bodies { return testkit.Value(openFiles(vfs.NewMem()))(t) },
		"NATS":  func(t *testing.T) Bodies { return onServers(t) },
	}
	tests := map[string]func(t *testing.T, b Bodies){
		"what was put is read, whole and in ranges":     testRanges,
		"what there is not cannot be opened":            testNotThere,
		"a body that breaks off is not there":           testBreaksOff,
		"what was removed is gone, and removed again":   testRemove,
		"all names are listed once":                     testList,
		"a context that has ended ends what is waiting": testContext,
	}
	for kind, open := range kinds {
		for name, test := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) { test(t, open(t)) })
		}
	}
}

func mustPut(t *testing.T, b Bodies, name string, body []byte) {
	t.Helper()
	n, err := b.Put(t.Context(), name, bytes.NewReader(body))
	testkit.Must(t, err)
	testkit.Equal(t, n, int64(len(body)), "bytes put")
}

// part reads a range, and checks the size of the whole.
func part(t *testing.T, b Bodies, name string, offset, size, whole int64) []byte {
	t.Helper()
	body, stored, err := b.Open(t.Context(), name, offset, size)
	testkit.Must(t, err)
	testkit.Equal(t, stored, whole, "bytes stored")
	got, err := io.ReadAll(body)
	testkit.Must(t, err)
	testkit.Must(t, body.Close())
	return got
}

func testRanges(t *testing.T, b Bodies) {
	const chunk = 512 << 10
	for _, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk + 7} {
		name, body := newID(), noise(uint64(size), size)
		mustPut(t, b, name, body)
		for _, r := range [][2]int{{0, size}, {0, 0}, {size, 0}, {size / 2, size - size/2}, {max(0, size-1), min(size, 1)}, {min(size, chunk-1), min(2, size-min(size, chunk-1))}} {
			got := part(t, b, name, int64(r[0]), int64(r[1]), int64(size))
			testkit.That(t, bytes.Equal(got, body[r[0]:r[0]+r[1]]), "%d bytes from %d of %d are %d others", r[1], r[0], size, len(got))
		}
	}
}

func testNotThere(t *testing.T, b Bodies) {
	_, _, err := b.Open(t.Context(), newID(), 0, 0)
	testkit.ErrorIs(t, err, fs.ErrNotExist)
}

func testBreaksOff(t *testing.T, b Bodies) {
	broken := errors.New("broken off")
	name := newID()
	_, err := b.Put(t.Context(), name, io.MultiReader(bytes.NewReader(noise(1, 700<<10)), errorReader{broken}))
	testkit.ErrorIs(t, err, broken)
	_, _, err = b.Open(t.Context(), name, 0, 0)
	testkit.ErrorIs(t, err, fs.ErrNotExist)
	// What was stored of it can be found and removed.
	for _, left := range testkit.Value(b.List(t.Context()))(t) {
		testkit.Equal(t, left, name, "listed")
		testkit.Must(t, b.Remove(t.Context(), left))
	}
	testkit.Slices(t, testkit.Value(b.List(t.Context()))(t), nil, "left")
}

func testRemove(t *testing.T, b Bodies) {
	gone, stays := newID(), newID()
	mustPut(t, b, gone, noise(1, 900<<10))
	mustPut(t, b, stays, noise(2, 10))
	for range 2 {
		testkit.Must(t, b.Remove(t.Context(), gone))
		_, _, err := b.Open(t.Context(), gone, 0, 0)
		testkit.ErrorIs(t, err, fs.ErrNotExist)
	}
	testkit.Slices(t, testkit.Value(b.List(t.Context()))(t), []string{stays}, "left")
	testkit.That(t, bytes.Equal(part(t, b, stays, 0, 10, 10), noise(2, 10)), "another body was changed")
}

func testList(t *testing.T, b Bodies) {
	var want []string
	for range 20 {
		want = append(want, newID())
		mustPut(t, b, want[len(want)-1], noise(3, 10))
	}
	got := testkit.Value(b.List(t.Context()))(t)
	slices.Sort(want)
	slices.Sort(got)
	testkit.Slices(t, got, want)
}

func testContext(t *testing.T, b Bodies) {
	if _, ok := b.(files); ok {
		t.Skip("files do not wait")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Put(ctx, newID(), strings.NewReader("body"))
	testkit.ErrorIs(t, err, context.Canceled)
	testkit.ErrorIs(t, b.Remove(ctx, newID()), context.Canceled)
	testkit.ErrorIs(t, testkit.Err(b.List(ctx)), context.Canceled)
}
