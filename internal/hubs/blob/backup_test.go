package blob

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: what entries name stays readable while it is held, whatever becomes of the blobs, and goes after
// that; put elsewhere, the entries find it.
func TestBodiesAreHeldAndRestored(t *testing.T) {
	store := metatest.NewMemory()
	s, err := Open(Config{Meta: store, FS: vfs.NewMem(), Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(s.CreateContainer(t.Context(), Path{Account: "account", Container: "box"}, nil)))
	body := bytes.Repeat([]byte("large"), 10_000)
	at := Path{Account: "account", Container: "box", Blob: "a/b"}
	testkit.Must(t, testkit.Err(s.Put(t.Context(), at, bytes.NewReader(body), Content{}, Conditions{})))
	testkit.Must(t, testkit.Err(s.Put(t.Context(), Path{Account: "account", Container: "box", Blob: "small"}, strings.NewReader("x"), Content{}, Conditions{})))

	release := s.Stored().Hold()
	entries, err := store.List(t.Context(), "")
	testkit.Must(t, err)
	var names []string
	for _, e := range append(entries, meta.Entry{Key: "hubs/a", Value: []byte("no JSON")}) {
		some, err := s.Stored().Named(e)
		testkit.Must(t, err, e.Key)
		names = append(names, some...)
	}
	testkit.MustEqual(t, len(names), 1, "bodies: %q", names)
	testkit.Must(t, s.Delete(t.Context(), at, Conditions{}))
	testkit.Must(t, s.Sweep(t.Context()))
	open, err := s.Stored().Open(t.Context(), names[0])
	testkit.Must(t, err)
	other, err := Restore(vfs.NewMem())
	testkit.Must(t, err)
	testkit.Must(t, other.Put(t.Context(), names[0], open))
	testkit.Must(t, other.Put(t.Context(), names[0], unreadable{})) // it is there
	testkit.Must(t, open.Close())
	copied, err := other.Open(t.Context(), names[0])
	testkit.Must(t, err)
	got, err := io.ReadAll(copied)
	testkit.Must(t, err)
	testkit.That(t, bytes.Equal(got, body), "another body was restored")

	release()
	release()
	testkit.Must(t, s.Sweep(t.Context()))
	testkit.ErrorIs(t, testkit.Err(s.Stored().Open(t.Context(), names[0])), fs.ErrNotExist, "after it was let go")
	for _, name := range []string{"", "../meta.db", names[0] + ".new", strings.Repeat("g", 32)} {
		testkit.That(t, other.Put(t.Context(), name, strings.NewReader("x")) != nil, "a body is put at %q", name)
	}
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error) { return 0, errors.New("it is read") }
