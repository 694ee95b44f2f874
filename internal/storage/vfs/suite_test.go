package vfs_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestEveryFileSystemBehavesAlike runs one suite over all of them, so that what
// passes on a Mem means something for the disk.
func TestEveryFileSystemBehavesAlike(t *testing.T) {
	systems := map[string]func(t *testing.T) vfs.FS{
		"OS":              func(t *testing.T) vfs.FS { return vfs.OS(t.TempDir()) },
		"Mem":             func(*testing.T) vfs.FS { return vfs.NewMem() },
		"Faulty over OS":  func(t *testing.T) vfs.FS { return vfs.NewFaulty(vfs.OS(t.TempDir())) },
		"Faulty over Mem": func(*testing.T) vfs.FS { return vfs.NewFaulty(vfs.NewMem()) },
	}
	for name, open := range systems {
		t.Run(name, func(t *testing.T) {
			for _, c := range suite {
				t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
			}
		})
	}
}

var suite = []struct {
	name string
	run  func(t *testing.T, d vfs.FS)
}{
	{"bytes are read back where they were written", testReadWrite},
	{"reading past the end gives what there is and io.EOF", testReadPastEnd},
	{"writing past the end fills the gap with zeros", testGap},
	{"truncating cuts, and what comes back is zeros", testTruncate},
	{"a negative offset or length is refused", testNegative},
	{"create refuses a name that is taken", testCreateTaken},
	{"what is not there says so", testMissing},
	{"a folder is no file and a file no folder", testKinds},
	{"a rename replaces a file and keeps open files open", testRename},
	{"a rename refuses folders in its way", testRenameRefused},
	{"a folder moves with all in it", testRenameFolder},
	{"remove takes files and empty folders", testRemove},
	{"remove all takes everything and does not mind absence", testRemoveAll},
	{"mkdir all makes parents and is content with what exists", testMkdirAll},
	{"list is sorted and tells kinds and sizes", testList},
	{"a file outlives its name while it is open", testUnlinkedOpen},
	{"a closed file answers fs.ErrClosed", testClosed},
	{"names that lead out are refused", testInvalidNames},
	{"a lock has one holder until it is closed", testLock},
	{"syncs succeed", testSyncs},
	{"many goroutines write and read one file", testConcurrent},
	{"many goroutines make the same folders", testConcurrentMkdir},
}

func testReadWrite(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	big := pattern(20_000)
	writeAt(t, f, big, 0)
	writeAt(t, f, []byte("hello"), 4094) // over the edge of a page
	copy(big[4094:], "hello")
	equal(t, contents(t, f), big)
	testkit.Must(t, f.Close())

	f = testkit.Value(d.Open("a"))(t)
	defer closing(t, f)
	equal(t, contents(t, f), big)
	part := make([]byte, 600)
	n := testkit.Value(f.ReadAt(part, 4000))(t)
	equal(t, part[:n], big[4000:4600])
}

func testReadPastEnd(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	defer closing(t, f)
	writeAt(t, f, []byte("hello"), 0)
	for _, c := range []struct {
		offset  int64
		length  int
		want    string
		wantErr error
	}{
		{0, 5, "hello", nil},
		{0, 6, "hello", io.EOF},
		{3, 9, "lo", io.EOF},
		{5, 1, "", io.EOF},
		{900, 1, "", io.EOF},
		{5, 0, "", nil},
	} {
		p := make([]byte, c.length)
		n, err := f.ReadAt(p, c.offset)
		if string(p[:n]) != c.want || err != c.wantErr {
			t.Errorf("ReadAt of %d at %d gave %q, %v; want %q, %v", c.length, c.offset, p[:n], err, c.want, c.wantErr)
		}
	}
}

func testGap(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	defer closing(t, f)
	writeAt(t, f, []byte("x"), 0)
	writeAt(t, f, []byte("y"), 9000)
	want := make([]byte, 9001)
	want[0], want[9000] = 'x', 'y'
	equal(t, contents(t, f), want)
	writeAt(t, f, nil, 20_000)
	equal(t, contents(t, f), want) // writing nothing grows nothing
}

func testTruncate(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	defer closing(t, f)
	data := pattern(10_000)
	writeAt(t, f, data, 0)
	testkit.Must(t, f.Truncate(700))
	equal(t, contents(t, f), data[:700])
	testkit.Must(t, f.Truncate(9000))
	equal(t, contents(t, f), append(slices.Clone(data[:700]), make([]byte, 8300)...))
	testkit.Must(t, f.Truncate(0))
	equal(t, contents(t, f), []byte{})
}

func testNegative(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	defer closing(t, f)
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt -1 succeeded")
	}
	if _, err := f.WriteAt(make([]byte, 1), -1); err == nil {
		t.Error("WriteAt -1 succeeded")
	}
	if err := f.Truncate(-1); err == nil {
		t.Error("Truncate -1 succeeded")
	}
}

func testCreateTaken(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("folder"))
	testkit.Must(t, create(t, d, "file").Close())
	for _, name := range []string{"file", "folder"} {
		_, err := d.Create(name)
		wantError(t, err, fs.ErrExist)
	}
}

func testMissing(t *testing.T, d vfs.FS) {
	_, err := d.Open("no")
	wantError(t, err, fs.ErrNotExist)
	if !vfs.IsNotExist(err) {
		t.Error("IsNotExist says no")
	}
	_, err = d.Create("no/a")
	wantError(t, err, fs.ErrNotExist)
	_, err = d.List("no")
	wantError(t, err, fs.ErrNotExist)
	_, err = d.Lock("no/LOCK")
	wantError(t, err, fs.ErrNotExist)
	wantError(t, d.Rename("no", "yes"), fs.ErrNotExist)
	wantError(t, d.Remove("no"), fs.ErrNotExist)
	wantError(t, d.SyncDir("no"), fs.ErrNotExist)

	testkit.Must(t, create(t, d, "here").Close())
	wantError(t, d.Rename("here", "no/there"), fs.ErrNotExist)
}

func testKinds(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("folder"))
	testkit.Must(t, create(t, d, "file").Close())
	_, err := d.Open("folder")
	wantError(t, err, syscall.EISDIR)
	_, err = d.Open("file/a")
	wantError(t, err, syscall.ENOTDIR)
	_, err = d.Create("file/a")
	wantError(t, err, syscall.ENOTDIR)
	_, err = d.List("file")
	wantError(t, err, syscall.ENOTDIR)
	wantError(t, d.MkdirAll("file"), syscall.ENOTDIR)
	wantError(t, d.MkdirAll("file/a"), syscall.ENOTDIR)
}

func testRename(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("to"))
	old := createWith(t, d, "to/b", "old")
	defer closing(t, old)
	fresh := createWith(t, d, "a", "new")
	defer closing(t, fresh)
	testkit.Must(t, d.Rename("a", "to/b"))

	_, err := d.Open("a")
	wantError(t, err, fs.ErrNotExist)
	equal(t, readFile(t, d, "to/b"), []byte("new"))
	equal(t, contents(t, old), []byte("old"))
	writeAt(t, fresh, []byte("er"), 3)
	equal(t, readFile(t, d, "to/b"), []byte("newer"))

	testkit.Must(t, d.Rename("to/b", "to/b"))
	equal(t, readFile(t, d, "to/b"), []byte("newer"))
}

func testRenameRefused(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("folder"))
	testkit.Must(t, d.MkdirAll("other"))
	testkit.Must(t, create(t, d, "file").Close())
	wantError(t, d.Rename("file", "folder"), fs.ErrExist)
	wantError(t, d.Rename("other", "folder"), fs.ErrExist)
	wantError(t, d.Rename("folder", "file"), syscall.ENOTDIR)
	wantError(t, d.Rename("folder", "folder/inside"), syscall.EINVAL)
	wantError(t, d.Rename("file", "."), fs.ErrInvalid)
	wantError(t, d.Rename(".", "a"), fs.ErrInvalid)
	wantList(t, d, ".", "file", "folder/", "other/")
}

func testRenameFolder(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("a/b"))
	testkit.Must(t, createWith(t, d, "a/b/f", "x").Close())
	testkit.Must(t, d.Rename("a", "c"))
	equal(t, readFile(t, d, "c/b/f"), []byte("x"))
	wantList(t, d, ".", "c/")
}

func testRemove(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("folder"))
	testkit.Must(t, create(t, d, "folder/f").Close())
	wantError(t, d.Remove("folder"), syscall.ENOTEMPTY)
	testkit.Must(t, d.Remove("folder/f"))
	testkit.Must(t, d.Remove("folder"))
	wantList(t, d, ".")
	testkit.Must(t, createWith(t, d, "folder", "now a file").Close())
}

func testRemoveAll(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("a/b/c"))
	testkit.Must(t, create(t, d, "a/b/f").Close())
	testkit.Must(t, create(t, d, "a/b/c/g").Close())
	testkit.Must(t, d.RemoveAll("a/b"))
	wantList(t, d, "a")
	testkit.Must(t, d.RemoveAll("a/b"))
	testkit.Must(t, d.RemoveAll("no/such"))
	testkit.Must(t, create(t, d, "file").Close())
	testkit.Must(t, d.RemoveAll("file"))
	wantList(t, d, ".", "a/")
}

func testMkdirAll(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("."))
	testkit.Must(t, d.MkdirAll("a/b/c"))
	testkit.Must(t, create(t, d, "a/b/f").Close())
	testkit.Must(t, d.MkdirAll("a/b/c"))
	testkit.Must(t, d.MkdirAll("a/b/d"))
	wantList(t, d, "a/b", "c/", "d/", "f")
}

func testList(t *testing.T, d vfs.FS) {
	testkit.Must(t, createWith(t, d, "b", "12345").Close())
	testkit.Must(t, d.MkdirAll("c/inner"))
	testkit.Must(t, create(t, d, "a").Close())
	testkit.Must(t, createWith(t, d, "C", "1").Close())
	got := testkit.Value(d.List("."))(t)
	want := []vfs.Entry{{Name: "C", Bytes: 1}, {Name: "a"}, {Name: "b", Bytes: 5}, {Name: "c", Dir: true}}
	testkit.Diff(t, want, got)
}

func testUnlinkedOpen(t *testing.T, d vfs.FS) {
	f := createWith(t, d, "a", "first")
	defer closing(t, f)
	testkit.Must(t, d.Remove("a"))
	testkit.Must(t, createWith(t, d, "a", "second").Close())
	writeAt(t, f, []byte("F"), 0)
	testkit.Must(t, f.Sync())
	equal(t, contents(t, f), []byte("First"))
	equal(t, readFile(t, d, "a"), []byte("second"))
}

func testClosed(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	testkit.Must(t, f.Close())
	_, err := f.ReadAt(make([]byte, 1), 0)
	wantError(t, err, fs.ErrClosed)
	_, err = f.WriteAt(make([]byte, 1), 0)
	wantError(t, err, fs.ErrClosed)
	_, err = f.Bytes()
	wantError(t, err, fs.ErrClosed)
	wantError(t, f.Sync(), fs.ErrClosed)
	wantError(t, f.Truncate(1), fs.ErrClosed)
	wantError(t, f.Close(), fs.ErrClosed)
}

func testInvalidNames(t *testing.T, d vfs.FS) {
	for _, name := range []string{"", "/", "/etc/passwd", "..", "../a", "a/../../b", "a//b", "a/", "./a", "a\x00b"} {
		_, err := d.Create(name)
		wantError(t, err, fs.ErrInvalid)
		_, err = d.Open(name)
		wantError(t, err, fs.ErrInvalid)
		_, err = d.List(name)
		wantError(t, err, fs.ErrInvalid)
		_, err = d.Lock(name)
		wantError(t, err, fs.ErrInvalid)
		wantError(t, d.Rename(name, "ok"), fs.ErrInvalid)
		wantError(t, d.Remove(name), fs.ErrInvalid)
		wantError(t, d.RemoveAll(name), fs.ErrInvalid)
		wantError(t, d.MkdirAll(name), fs.ErrInvalid)
		wantError(t, d.SyncDir(name), fs.ErrInvalid)
	}
	testkit.Must(t, create(t, d, "ok").Close())
	wantError(t, d.Rename("ok", "../out"), fs.ErrInvalid)
	wantError(t, d.Remove("."), fs.ErrInvalid)
	wantError(t, d.RemoveAll("."), fs.ErrInvalid)
}

func testLock(t *testing.T, d vfs.FS) {
	first, err := d.Lock("LOCK")
	testkit.Must(t, err)
	_, err = d.Lock("LOCK")
	wantError(t, err, vfs.ErrLocked)
	other, err := d.Lock("OTHER")
	testkit.Must(t, err)
	testkit.Must(t, other.Close())
	testkit.Must(t, first.Close())
	testkit.Must(t, first.Close())
	again, err := d.Lock("LOCK")
	testkit.Must(t, err)
	testkit.Must(t, first.Close()) // a stale Close must not free the new holder's lock
	_, err = d.Lock("LOCK")
	wantError(t, err, vfs.ErrLocked)
	testkit.Must(t, again.Close())
	wantList(t, d, ".", "LOCK", "OTHER")
}

func testSyncs(t *testing.T, d vfs.FS) {
	testkit.Must(t, d.MkdirAll("a"))
	f := createWith(t, d, "a/f", "x")
	defer closing(t, f)
	testkit.Must(t, f.Sync())
	testkit.Must(t, f.Sync())
	testkit.Must(t, d.SyncDir("a"))
	testkit.Must(t, d.SyncDir("."))
}

func testConcurrent(t *testing.T, d vfs.FS) {
	f := create(t, d, "a")
	defer closing(t, f)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			mine := bytes.Repeat([]byte{byte('a' + i)}, 1000)
			for range 20 {
				writeAt(t, f, mine, int64(i)*1000)
				testkit.Check(t, f.Sync())
				got := make([]byte, 1000)
				if _, err := f.ReadAt(got, int64(i)*1000); err != nil || !bytes.Equal(got, mine) {
					t.Errorf("goroutine %d read something else, %v", i, err)
				}
			}
		})
	}
	group.Wait()
}

func testConcurrentMkdir(t *testing.T, d vfs.FS) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			testkit.Check(t, d.MkdirAll("a/b/c"))
			f, err := d.Create(fmt.Sprintf("a/b/c/%d", i))
			if err != nil {
				t.Error(err)
				return
			}
			closing(t, f)
		})
	}
	group.Wait()
	wantList(t, d, "a/b/c", "0", "1", "2", "3", "4", "5", "6", "7")
}

func TestOSMakesItsRootAndNothingOutside(t *testing.T) {
	base := t.TempDir()
	d := vfs.OS(filepath.Join(base, "x", "data"))
	_, err := d.List(".")
	wantError(t, err, fs.ErrNotExist)
	testkit.Must(t, d.MkdirAll("."))
	testkit.Must(t, create(t, d, "f").Close())
	wantList(t, vfs.OS(base), "x/data", "f")
}

// Helpers of all tests here.

func wantError(t *testing.T, got, want error) {
	t.Helper()
	testkit.ErrorIs(t, got, want)
}

func equal(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes %.60q, want %d bytes %.60q", len(got), got, len(want), want)
	}
}

func create(t *testing.T, d vfs.FS, name string) vfs.File {
	t.Helper()
	f := testkit.Value(d.Create(name))(t)
	return f
}

func createWith(t *testing.T, d vfs.FS, name, text string) vfs.File {
	t.Helper()
	f := create(t, d, name)
	writeAt(t, f, []byte(text), 0)
	return f
}

// writeAt may be called outside the test's own goroutine.
func writeAt(t *testing.T, f vfs.File, p []byte, offset int64) {
	t.Helper()
	if n, err := f.WriteAt(p, offset); n != len(p) || err != nil {
		t.Errorf("WriteAt of %d bytes gave %d, %v", len(p), n, err)
	}
}

func contents(t *testing.T, f vfs.File) []byte {
	t.Helper()
	n := testkit.Value(f.Bytes())(t)
	p := make([]byte, n)
	testkit.Must(t, testkit.Err(f.ReadAt(p, 0)))
	return p
}

func readFile(t *testing.T, d vfs.FS, name string) []byte {
	t.Helper()
	f := testkit.Value(d.Open(name))(t)
	defer closing(t, f)
	return contents(t, f)
}

func closing(t *testing.T, c io.Closer) {
	t.Helper()
	testkit.Check(t, c.Close())
}

// wantList compares a folder's names; those of folders end in a slash.
func wantList(t *testing.T, d vfs.FS, dir string, want ...string) {
	t.Helper()
	testkit.Equal(t, list(t, d, dir), strings.Join(want, " "), "%s holds: want %q", dir, want)
}

func list(t *testing.T, d vfs.FS, dir string) string {
	t.Helper()
	entries := testkit.Value(d.List(dir))(t)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
		if e.Dir {
			names[i] += "/"
		}
	}
	return strings.Join(names, " ")
}

// pattern is bytes of which no two stretches are alike.
func pattern(n int) []byte {
	p := make([]byte, 0, n+8)
	for i := 0; len(p) < n; i++ {
		p = fmt.Appendf(p, "%d,", i)
	}
	return p[:n]
}
