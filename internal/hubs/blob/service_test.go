package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A small body is in the meta store, a larger one in a file; both come back as they were,
// also after a restart.
func TestBodiesComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		sizes := []int{0, 1, InlineBytes, InlineBytes + 1, 3 * copyBytes}
		for _, size := range sizes {
			y.put(fmt.Sprint(size), noise(uint64(size), size), Conditions{})
		}
		testkit.Equal(t, y.fileCount(), 2, "there files")
		y.open()
		testkit.Must(t, y.Sweep(t.Context()))
		for _, size := range sizes {
			y.wantBody(fmt.Sprint(size), noise(uint64(size), size))
		}
	})
}

func TestARangeIsReadAcrossBlocks(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		all := noise(1, 3000)
		for i, id := range []string{"x", "y", "z"} {
			y.block("b", id, all[i*1000:(i+1)*1000])
		}
		testkit.Must(t, testkit.Err(y.Commit(t.Context(), in("b"), blocks("x y z"), Content{}, Conditions{})))
		body := testkit.Value(y.Open(t.Context(), in("b"), Conditions{}))(t)
		defer body.Close()
		for _, part := range [][2]int64{{0, 3000}, {0, 1}, {999, 2}, {1000, 1000}, {500, 2000}, {2999, 1}, {3000, 0}} {
			var got bytes.Buffer
			testkit.Must(t, body.WriteRange(t.Context(), &got, part[0], part[1]))
			testkit.Slices(t, got.Bytes(), all[part[0]:part[0]+part[1]], "range %v is not what was written", part)
		}
		for _, part := range [][2]int64{{0, 3001}, {-1, 1}, {3001, 0}} {
			testkit.ErrorIs(t, body.WriteRange(t.Context(), io.Discard, part[0], part[1]), ErrRange, "range %v", part)
		}
	})
}

// A reader of a body that is replaced, or deleted, finishes its read; then its file goes.
func TestAReaderFinishesWhatItBegan(t *testing.T) {
	for name, end := range map[string]func(y *yard) error{
		"replaced":          func(y *yard) error { y.put("b", noise(2, large), Conditions{}); return nil },
		"deleted":           func(y *yard) error { return y.Delete(y.t.Context(), in("b"), Conditions{}) },
		"container deleted": func(y *yard) error { return y.DeleteContainer(y.t.Context(), box, Conditions{}) },
	} {
		onBoth(t, func(t *testing.T, y *yard) {
			y.put("b", noise(1, large), Conditions{})
			body := testkit.Value(y.Open(t.Context(), in("b"), Conditions{}))(t)
			testkit.Must(t, end(y))
			testkit.Must(t, y.Sweep(t.Context()))
			var got bytes.Buffer
			testkit.Must(t, body.WriteRange(t.Context(), &got, 0, body.Bytes))
			testkit.Slices(t, got.Bytes(), noise(1, large), "the reader got another body")
			body.Close()
			testkit.Must(t, y.Sweep(t.Context()))
			testkit.Equal(t, y.fileCount(), map[string]int{"replaced": 1}[name], "%s: files are left", name)
		})
	}
}

// Of many who create the same blob, or change the same state of it, exactly one wins. The
// store is the real one.
func TestOneWriterWins(t *testing.T) { // P1
	y := newYard(t)
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "meta.db"), NoSync: true})
	testkit.Must(t, err)
	defer func() { testkit.Must(t, store.Close()) }()
	y.meta = metatest.NewFaulty(store)
	y.open()
	_, err = y.CreateContainer(t.Context(), box, nil)
	testkit.Must(t, err)
	race := func(write func(i int) error, lost error) {
		t.Helper()
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				switch err := write(i); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, lost):
					t.Errorf("a loser was told %v, want %v", err, lost)
				}
			})
		}
		all.Wait()
		testkit.Equal(t, won.Load(), 1, "have won")
	}
	race(func(i int) error {
		_, err := y.Put(t.Context(), in("b"), strings.NewReader(fmt.Sprint(i)), Content{}, Conditions{IfNoneMatch: "*"})
		return err
	}, ErrBlobExists)
	first, err := y.Blob(t.Context(), in("b"), Conditions{})
	testkit.Must(t, err)
	race(func(i int) error {
		_, err := y.SetMetadata(t.Context(), in("b"), map[string]string{"ownerid": fmt.Sprint(i)}, Conditions{IfMatch: first.ETag})
		return err
	}, ErrConditionNotMet)
	race(func(i int) error {
		_, err := y.Lease(t.Context(), in("b"), LeaseAction{Kind: AcquireLease, Proposed: fmt.Sprint(i), Duration: -1}, Conditions{})
		return err
	}, ErrLeasePresent)
}

func TestAWriteGivesAnotherETagAndALeaseDoesNot(t *testing.T) {
	y := newYard(t)
	seen := map[string]bool{}
	note := func(b Blob, err error) {
		t.Helper()
		testkit.Must(t, err)
		if seen[b.ETag] {
			t.Errorf("ETag %s came twice", b.ETag)
		}
		seen[b.ETag] = true
	}
	note(y.put("b", nil, Conditions{}), nil)
	note(y.put("b", nil, Conditions{}), nil)
	note(y.SetMetadata(t.Context(), in("b"), nil, Conditions{}))
	note(y.SetProperties(t.Context(), in("b"), Properties{ContentType: "text/plain"}, Conditions{}))
	b, err := y.Lease(t.Context(), in("b"), LeaseAction{Kind: AcquireLease, Proposed: "A", Duration: -1}, Conditions{})
	testkit.Must(t, err)
	if !seen[b.ETag] {
		t.Error("a lease changed the ETag")
	}
}

// A lease outlives restarts and ends by the clock; who writes after that makes it gone for good.
func TestALeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.put("b", nil, Conditions{})
		acquire := LeaseAction{Kind: AcquireLease, Proposed: "A", Duration: 15 * time.Second}
		_, err := y.Lease(t.Context(), in("b"), acquire, Conditions{})
		testkit.Must(t, err)
		y.open()
		set := func(id string) error {
			_, err := y.SetMetadata(t.Context(), in("b"), nil, Conditions{LeaseID: id})
			return err
		}
		time.Sleep(14 * time.Second)
		testkit.ErrorIs(t, set(""), ErrLeaseNeeded, "a write without the lease")
		testkit.Must(t, set("A"))
		time.Sleep(time.Second)
		testkit.ErrorIs(t, set("A"), ErrLeaseLost, "a write after its end")
		testkit.Must(t, set(""))
		_, err = y.Lease(t.Context(), in("b"), LeaseAction{Kind: RenewLease, ID: "A"}, Conditions{})
		testkit.ErrorIs(t, err, ErrLeaseMismatch, "a renewal after another has written")
	})
}

// A commit forgets what was uploaded and not committed; its own blocks can be used again.
func TestBlocks(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		y.block("b", "1", noise(1, 100))
		y.block("b", "2", noise(2, 100))
		y.block("b", "2", noise(3, 100)) // in place of the other
		y.block("b", "3", noise(4, 100))
		testkit.ErrorIs(t, testkit.Err(y.Blob(t.Context(), in("b"), Conditions{})), ErrBlobNotFound, "blocks alone are a blob")
		if page, err := y.List(t.Context(), box, ListQuery{}); err != nil || len(page.Blobs) != 0 {
			t.Errorf("blocks alone are listed: %v, %v", page, err)
		}
		_, err := y.Commit(t.Context(), in("b"), blocks("2 1"), Content{}, Conditions{IfNoneMatch: "*"})
		testkit.Must(t, err)
		y.wantBody("b", append(noise(3, 100), noise(1, 100)...))
		testkit.ErrorIs(t, testkit.Err(y.Commit(t.Context(), in("b"), blocks("3"), Content{}, Conditions{})), ErrBlockList, "a forgotten block")
		y.block("b", "1", noise(5, 50))
		_, err = y.Commit(t.Context(), in("b"), []BlockName{{"1", Committed}, {"1", Uncommitted}, {"2", Latest}, {"1", Latest}}, Content{}, Conditions{})
		testkit.Must(t, err)
		y.wantBody("b", bytes.Join([][]byte{noise(1, 100), noise(5, 50), noise(3, 100), noise(5, 50)}, nil))
		list, err := y.Blocks(t.Context(), in("b"), Conditions{})
		testkit.Must(t, err)
		if len(list.CommittedBlocks) != 4 || len(list.UncommittedBlocks) != 0 {
			t.Errorf("blocks are %+v", list)
		}
		testkit.Must(t, y.Sweep(t.Context()))
		y.wantBody("b", bytes.Join([][]byte{noise(1, 100), noise(5, 50), noise(3, 100), noise(5, 50)}, nil))
		testkit.Equal(t, y.fileCount(), 3, "files are left")
		y.put("b", []byte("small"), Conditions{})
		testkit.Equal(t, y.fileCount(), 0, "files are left of a body that was replaced")
	})
}

// Blocks that nobody commits are kept for a week.
func TestBlocksThatNobodyCommitsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.block("b", "1", noise(1, 10))
		time.Sleep(uncommittedAge)
		testkit.Must(t, y.Sweep(t.Context()))
		list, err := y.Blocks(t.Context(), in("b"), Conditions{})
		if err != nil || len(list.UncommittedBlocks) != 1 {
			t.Errorf("after a week: %+v, %v", list, err)
		}
		time.Sleep(time.Second)
		testkit.Must(t, y.Sweep(t.Context()))
		if _, err := y.Blocks(t.Context(), in("b"), Conditions{}); !errors.Is(err, ErrBlobNotFound) || y.fileCount() != 0 {
			t.Errorf("later: %v, and %d files", err, y.fileCount())
		}
	})
}

// A deleted container's blobs are gone with it, also if it is made anew.
func TestADeletedContainerIsEmptyWhenMadeAnew(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		y.put("small", []byte("x"), Conditions{})
		y.put("large", noise(1, large), Conditions{})
		y.block("blocks", "1", noise(1, 10))
		testkit.Must(t, y.DeleteContainer(t.Context(), box, Conditions{}))
		testkit.ErrorIs(t, testkit.Err(y.Blob(t.Context(), in("small"), Conditions{})), ErrContainerNotFound, "a blob in no container")
		testkit.Must(t, testkit.Err(y.CreateContainer(t.Context(), box, nil)))
		if page, err := y.List(t.Context(), box, ListQuery{Uncommitted: true}); err != nil || len(page.Blobs) != 0 {
			t.Errorf("the new one has %v, %v", page.Blobs, err)
		}
		testkit.Must(t, y.Sweep(t.Context()))
		testkit.Equal(t, y.fileCount(), 0, "files are left")
	})
}

func TestLimits(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		_, err := y.Put(t.Context(), in("b"), strings.NewReader(""), Content{Metadata: map[string]string{"a": strings.Repeat("x", MaxMetadataBytes)}}, Conditions{})
		testkit.ErrorIs(t, err, ErrMetadata, "too much metadata")
		for _, name := range []string{"a-b", "", "1a", "a b", "ä"} {
			if _, err := y.SetMetadata(t.Context(), in("b"), map[string]string{name: ""}, Conditions{}); !errors.Is(err, ErrMetadata) {
				t.Errorf("metadata %q: %v", name, err)
			}
		}
		if _, err := y.Put(t.Context(), in(strings.Repeat("x", MaxNameBytes+1)), strings.NewReader(""), Content{}, Conditions{}); !errors.Is(err, ErrName) {
			t.Errorf("a long name: %v", err)
		}
		longest := strings.Repeat("x", MaxNameBytes)
		y.put(longest, noise(1, large), Conditions{})
		y.wantBody(longest, noise(1, large))
		if page, err := y.List(t.Context(), box, ListQuery{Prefix: "xx"}); err != nil || len(page.Blobs) != 1 || page.Blobs[0].Name != longest {
			t.Errorf("the longest name is not listed: %v", err)
		}
		y.bodies.limit = 1 << 20
		if _, err := y.Put(t.Context(), in("big"), bytes.NewReader(make([]byte, 1<<20+1)), Content{}, Conditions{}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a body that is too large: %v", err)
		}
		y.put("big", make([]byte, 1<<20), Conditions{})
		if _, err := y.Commit(t.Context(), in("b"), make([]BlockName, MaxBlocks+1), Content{}, Conditions{}); !errors.Is(err, ErrTooMany) {
			t.Errorf("too many blocks: %v", err)
		}
	})
}

// A body that breaks off is stored nowhere, however small it is.
func TestABodyThatBreaksOffIsNotStored(t *testing.T) {
	onBoth(t, func(t *testing.T, y *yard) {
		for _, size := range []int{10, large} {
			broken := io.MultiReader(bytes.NewReader(noise(1, size)), errorReader{io.ErrUnexpectedEOF})
			testkit.ErrorIs(t, testkit.Err(y.Put(t.Context(), in("b"), broken, Content{}, Conditions{})), ErrCutShort, "after %d bytes", size)
			if _, err := y.Blob(t.Context(), in("b"), Conditions{}); !errors.Is(err, ErrBlobNotFound) || y.fileCount() != 0 {
				t.Errorf("after %d bytes there is something: %v, %d files", size, err, y.fileCount())
			}
		}
	})
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// Run sweeps at once, ends with its context, and says nothing of that.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		f := testkit.Value(y.mem.Create("0123456789abcdef0123456789abcdef"))(t)
		testkit.Must(t, f.Close())
		foreign := testkit.Value(y.mem.Create("README"))(t)
		testkit.Must(t, foreign.Close())
		stop := testkit.Run(t, y.Run)
		synctest.Wait()
		testkit.Equal(t, y.fileCount(), 1, "what nobody names is there yet, or what is not ours is gone")
		stop()
	})
}
