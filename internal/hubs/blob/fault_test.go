package blob

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever operation of the disk fails under a write, the write fails, what was there
// before is there still, and nothing is left of it.
func TestAFailedWriteChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	for _, kind := range []vfs.OpKind{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir, vfs.OpClose} {
		for _, how := range []error{broken, syscall.ENOSPC, vfs.ShortWrite(10, syscall.ENOSPC)} {
			t.Run(fmt.Sprint(kind, " ", how), func(t *testing.T) {
				y := newYard(t)
				before := y.put("b", noise(1, large), Conditions{})
				y.fs.Inject(func(op vfs.Op) error {
					if op.Kind == kind {
						return how
					}
					return nil
				})
				_, err := y.Put(t.Context(), in("b"), bytes.NewReader(noise(2, large)), Content{}, Conditions{})
				if err == nil || errors.Is(how, syscall.ENOSPC) && !errors.Is(err, ErrNoSpace) {
					t.Fatalf("the write: %v", err)
				}
				if _, err := y.PutBlock(t.Context(), in("b"), "1", bytes.NewReader(noise(2, 10)), Conditions{}); err == nil {
					t.Error("a block was stored")
				}
				y.fs.Inject(nil)
				y.wantBody("b", noise(1, large))
				if b, err := y.Blob(t.Context(), in("b"), Conditions{}); err != nil || b.ETag != before.ETag {
					t.Errorf("the blob is %v, %v", b, err)
				}
				testkit.Must(t, y.Sweep(t.Context()))
				testkit.Equal(t, y.fileCount(), 1, "there files")
			})
		}
	}
}

// A full disk refuses bodies, and takes them again once there is room.
func TestAFullDisk(t *testing.T) {
	y := newYard(t)
	y.mem.SetCapacity(3 * large)
	y.put("1", noise(1, large), Conditions{})
	_, err := y.Put(t.Context(), in("2"), bytes.NewReader(noise(2, 3*large)), Content{}, Conditions{})
	testkit.MustErrorIs(t, err, ErrNoSpace)
	testkit.Must(t, y.Delete(t.Context(), in("1"), Conditions{}))
	y.put("2", noise(2, 2*large), Conditions{})
	y.wantBody("2", noise(2, 2*large))
}

// A file that is not what was stored is an error, and not a shorter body.
func TestADamagedFileIsNoticed(t *testing.T) {
	y := newYard(t)
	y.put("b", noise(1, large), Conditions{})
	entries := testkit.Value(y.mem.List("."))(t)
	f := testkit.Value(y.mem.Open(entries[0].Name))(t)
	testkit.Must(t, f.Truncate(large-1))
	testkit.Must(t, f.Close())
	if _, err := y.body("b"); err == nil {
		t.Error("half a body was given for the whole")
	}
}

// Sweeps remove nothing that somebody reads, writes or commits at the time.
func TestSweepsAndWritersTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		var writers sync.WaitGroup
		stop := make(chan struct{})
		var sweeper sync.WaitGroup
		sweeper.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				testkit.Check(t, y.Sweep(t.Context()))
			}
		})
		for w := range 6 {
			name := fmt.Sprint("blob-", w%3)
			writers.Go(func() {
				for i := range 60 {
					body := noise(uint64(w), large)
					switch i % 3 {
					case 0:
						_, err := y.Put(t.Context(), in(name), bytes.NewReader(body), Content{}, Conditions{})
						check(t, err)
					case 1:
						_, err := y.PutBlock(t.Context(), in(name), "same", bytes.NewReader(body), Conditions{})
						check(t, err)
						_, err = y.Commit(t.Context(), in(name), blocks("same same"), Content{}, Conditions{})
						check(t, err, ErrBlockList) // another has committed meanwhile
					case 2:
						got, err := readAll(t.Context(), y.Service, in(name))
						check(t, err, ErrBlobNotFound)
						if err == nil && len(got)%large != 0 {
							t.Errorf("a body has %d bytes", len(got))
						}
					}
				}
			})
		}
		writers.Wait()
		close(stop)
		sweeper.Wait()
		for i := range 3 {
			testkit.Check(t, testkit.Err(y.body(fmt.Sprint("blob-", i))))
		}
		testkit.Must(t, y.Sweep(t.Context()))
		if got := y.fileCount(); got > 6 {
			t.Errorf("%d files are left", got)
		}
	})
}

func check(t *testing.T, err error, allowed ...error) {
	t.Helper()
	for _, a := range allowed {
		if errors.Is(err, a) {
			return
		}
	}
	testkit.Check(t, err)
}
