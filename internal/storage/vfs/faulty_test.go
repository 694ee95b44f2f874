package vfs_test

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// everything does one operation of each kind, in the order of the kinds.
func everything(d vfs.FS, opened vfs.File) []error {
	var errs []error
	did := func(err error) { errs = append(errs, err) }
	_, err := d.Create("new")
	did(err)
	_, err = d.Open("f")
	did(err)
	did(d.Rename("f", "g"))
	did(d.Remove("new"))
	did(d.RemoveAll("d"))
	did(d.MkdirAll("d"))
	_, err = d.List(".")
	did(err)
	did(d.SyncDir("."))
	_, err = d.Lock("LOCK")
	did(err)
	_, err = opened.ReadAt(make([]byte, 1), 1)
	did(err)
	_, err = opened.WriteAt(make([]byte, 2), 3)
	did(err)
	did(opened.Sync())
	did(opened.Truncate(9))
	_, err = opened.Bytes()
	did(err)
	did(opened.Close())
	return errs
}

func TestEveryOperationCanBeMadeToFail(t *testing.T) {
	d := vfs.NewFaulty(vfs.NewMem())
	f := createWith(t, d, "f", "text")
	d.Inject(func(vfs.Op) error { return syscall.EIO })
	for _, err := range everything(d, f) {
		wantError(t, err, syscall.EIO)
		var path *fs.PathError
		if !errors.As(err, &path) {
			t.Errorf("%v is no *fs.PathError", err)
		}
	}
	d.Inject(nil)
	equal(t, readFile(t, d, "f"), []byte("text")) // nothing was done
	wantList(t, d, ".", "f")
	wantError(t, f.Sync(), fs.ErrClosed) // but for the Close
}

func TestTheInjectedFunctionSeesEveryOperation(t *testing.T) {
	d := vfs.NewFaulty(vfs.NewMem())
	f := createWith(t, d, "f", "text")
	var seen []vfs.Op
	d.Inject(func(op vfs.Op) error { seen = append(seen, op); return nil })
	for _, err := range everything(d, f) {
		testkit.Must(t, err)
	}
	want := []vfs.Op{
		{Kind: vfs.OpCreate, Name: "new", N: 2},
		{Kind: vfs.OpOpen, Name: "f", N: 1},
		{Kind: vfs.OpRename, Name: "f", To: "g", N: 1},
		{Kind: vfs.OpRemove, Name: "new", N: 1},
		{Kind: vfs.OpRemoveAll, Name: "d", N: 1},
		{Kind: vfs.OpMkdirAll, Name: "d", N: 1},
		{Kind: vfs.OpList, Name: ".", N: 1},
		{Kind: vfs.OpSyncDir, Name: ".", N: 1},
		{Kind: vfs.OpLock, Name: "LOCK", N: 1},
		{Kind: vfs.OpRead, Name: "f", Offset: 1, Bytes: 1, N: 1},
		{Kind: vfs.OpWrite, Name: "f", Offset: 3, Bytes: 2, Data: []byte{0, 0}, N: 2},
		{Kind: vfs.OpSync, Name: "f", N: 1},
		{Kind: vfs.OpTruncate, Name: "f", Bytes: 9, N: 1},
		{Kind: vfs.OpBytes, Name: "f", N: 1},
		{Kind: vfs.OpClose, Name: "f", N: 1},
	}
	testkit.Diff(t, want, seen)
	testkit.Equal(t, d.Count(vfs.OpWrite), 2, "counted writes")
}

func TestAShortWriteWritesABeginning(t *testing.T) {
	d := vfs.NewFaulty(vfs.NewMem())
	f := create(t, d, "f")
	defer closing(t, f)
	d.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			return vfs.ShortWrite(3, syscall.ENOSPC)
		}
		return nil
	})
	n, err := f.WriteAt([]byte("hello"), 0)
	wantError(t, err, syscall.ENOSPC)
	testkit.Equal(t, n, 3, "wrote bytes")
	equal(t, contents(t, f), []byte("hel"))
	testkit.Equal(t, vfs.ShortWrite(3, syscall.ENOSPC).Error(), syscall.ENOSPC.Error())
	d.Inject(func(vfs.Op) error { return vfs.ShortWrite(0, syscall.ENOSPC) })
	_, err = f.WriteAt([]byte("hello"), 0)
	wantError(t, err, syscall.ENOSPC)
	d.Inject(nil)
	equal(t, contents(t, f), []byte("hel"))
}

func TestABlockedSyncHoldsUpNothingElse(t *testing.T) {
	d := vfs.NewFaulty(vfs.NewMem())
	f := create(t, d, "f")
	defer closing(t, f)
	entered, release := make(chan struct{}), make(chan struct{})
	var released atomic.Bool
	d.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && op.N == 1 {
			close(entered)
			<-release
		}
		return nil
	})
	done := make(chan error)
	go func() {
		err := f.Sync()
		if !released.Load() {
			err = errors.New("the sync did not wait")
		}
		done <- err
	}()
	<-entered
	writeAt(t, f, []byte("x"), 0)
	testkit.Must(t, f.Sync())
	released.Store(true)
	close(release)
	testkit.Must(t, <-done)
}

func TestKindsHaveNames(t *testing.T) {
	if got := vfs.OpSyncDir.String() + " " + vfs.OpClose.String(); got != "syncdir close" {
		t.Errorf("got %q", got)
	}
}
