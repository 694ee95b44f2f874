package blob

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

	release, err := s.Stored().Hold(t.Context())
	testkit.Must(t, err)
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

	testkit.Must(t, release(t.Context()))
	testkit.Must(t, release(t.Context()))
	testkit.Must(t, s.Sweep(t.Context()))
	testkit.ErrorIs(t, testkit.Err(s.Stored().Open(t.Context(), names[0])), fs.ErrNotExist, "after it was let go")
	for _, name := range []string{"", "../meta.db", names[0] + ".new", strings.Repeat("g", 32)} {
		testkit.That(t, other.Put(t.Context(), name, strings.NewReader("x")) != nil, "a body is put at %q", name)
	}
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error) { return 0, errors.New("it is read") }

// C7: while one node copies the bodies, no other removes any, however long nobody has named it.
func TestOtherNodesKeepBodiesThatAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, bodies := metatest.NewMemory(), testkit.Value(openFiles(vfs.NewMem()))(t)
		open := func() *Service {
			s, err := Open(Config{Meta: metatest.NewLateNode(store), Bodies: bodies, Log: testkit.Quiet()})
			testkit.Must(t, err)
			return s
		}
		here, there := open(), open()
		testkit.Must(t, testkit.Err(there.CreateContainer(t.Context(), Path{Account: "account", Container: "box"}, nil)))
		at := Path{Account: "account", Container: "box", Blob: "a"}
		testkit.Must(t, testkit.Err(there.Put(t.Context(), at, bytes.NewReader(bytes.Repeat([]byte("large"), 10_000)), Content{}, Conditions{})))
		release, err := here.Stored().Hold(t.Context())
		testkit.Must(t, err)
		testkit.Must(t, there.Delete(t.Context(), at, Conditions{}))
		sweep := func(want int, when string) {
			for range 6 {
				testkit.Must(t, there.Sweep(t.Context()))
				time.Sleep(20 * time.Minute)
			}
			testkit.Equal(t, len(testkit.Value(bodies.List(t.Context()))(t)), want, when)
		}
		sweep(1, "bodies while they are held")
		testkit.Must(t, release(t.Context()))
		sweep(0, "bodies after they were let go")
	})
}
