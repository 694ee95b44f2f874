package bolt

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fullFile is a file that does not grow beyond a size.
type fullFile struct {
	io.WriterAt
	size int64
	err  error
}

func (f *fullFile) WriteAt(p []byte, at int64) (int, error) {
	fits := min(max(f.size-at, 0), int64(len(p)))
	n, err := f.WriterAt.WriteAt(p[:fits], at)
	if err == nil && int(fits) < len(p) {
		err = f.err
	}
	return n, err
}

// fillUp makes the disk of a store full, as far as the reserve is concerned.
func fillUp(t *testing.T, s *Store, err error) {
	t.Helper()
	s.room.file = &fullFile{s.db.file, s.room.written, err}
}

// used is where the pages in use end.
func used(t *testing.T, s *Store) (bytes int64) {
	t.Helper()
	testkit.Must(t, s.db.View(func(tx *bbolt.Tx) error { bytes = tx.Size(); return nil }))
	return bytes
}

// R6: on a full disk entries that make the store larger are refused while the reserve is still
// whole; what frees room is taken, however much there is to delete.
func TestAFullDiskTakesWhatFreesRoom(t *testing.T) {
	s := openStore(t, Config{NoSync: true, ReserveBytes: DefaultReserveBytes})
	value := func(n int) string { return string(make([]byte, n)) }
	for i := range 200 {
		set(t, s, fmt.Sprintf("k/%d", i), 0, value(rand.IntN(6<<10)))
	}
	set(t, s, "large/0", 0, value(meta.MaxValueBytes))
	set(t, s, "large/1", 0, value(meta.MaxValueBytes))
	set(t, s, "large/2", 0, value(meta.MaxValueBytes))
	fillUp(t, s, syscall.ENOSPC)
	var err error
	for i := 0; err == nil; i++ {
		_, err = s.CompareAndSet(t.Context(), fmt.Sprintf("more/%d", i), 0, make([]byte, 3<<10))
	}
	if !errors.Is(err, meta.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, meta.ErrUncertain) {
		t.Fatalf("got %v, want ErrNoSpace with its cause and no doubt", err)
	}
	if left := s.room.written - used(t, s); left < DefaultReserveBytes*9/10 {
		t.Errorf("entries have eaten the reserve: %d bytes are left", left)
	}
	entries := testkit.Value(s.List(t.Context(), ""))(t)
	for i, e := range entries {
		revision := e.Revision
		if len(e.Value) <= 2<<10 {
			revision = set(t, s, e.Key, revision, string(e.Value)+", marked")
		}
		testkit.Must(t, s.Delete(t.Context(), e.Key, revision), "delete %d of %d", i, len(entries))
	}
	if end := used(t, s); end > s.room.written {
		t.Errorf("the file was written up to %d, beyond the %d it has", end, s.room.written)
	}
	s.room.file = s.db.file
	set(t, s, "after", 0, value(8<<10))
}

// R6: what replaces an entry by a larger one is refused unless it is small; what fails otherwise is
// not taken for a full disk.
func TestAFullDiskRefusesWhatTakesRoom(t *testing.T) {
	s := openStore(t, Config{NoSync: true, ReserveBytes: DefaultReserveBytes})
	small := set(t, s, "small", 0, "small")
	large := set(t, s, "large", 0, string(make([]byte, 10<<10)))
	s.room.file = &fullFile{s.db.file, used(t, s), syscall.ENOSPC}
	s.room.written = used(t, s)
	for _, test := range []struct {
		key      string
		revision meta.Revision
		bytes    int
		refused  bool
	}{
		{"new", 0, 1, true},
		{"small", small, smallValue, true},
		{"small", small, smallValue - recordValue, false},
		{"large", large, 10<<10 + 1, true},
		{"large", large, 10 << 10, false},
	} {
		t.Run(fmt.Sprintf("%s with %d bytes", test.key, test.bytes), func(t *testing.T) {
			_, err := s.CompareAndSet(t.Context(), test.key, test.revision, make([]byte, test.bytes))
			testkit.Equal(t, errors.Is(err, meta.ErrNoSpace), test.refused, "refused: %v", err)
		})
	}
	s.room.file = &fullFile{s.db.file, 0, syscall.EIO}
	if _, err := s.CompareAndSet(t.Context(), "new", 0, nil); !errors.Is(err, meta.ErrUncertain) || !errors.Is(err, syscall.EIO) {
		t.Errorf("after a failed write: %v", err)
	}
}

// R6: changes that together want more than there is are made one by one.
func TestABatchThatDoesNotFitIsDividedOnAFullDisk(t *testing.T) {
	s := openStore(t, Config{NoSync: true, ReserveBytes: DefaultReserveBytes})
	revisions := map[string]meta.Revision{}
	for i := range 20 {
		key := fmt.Sprintf("k/%d", i)
		revisions[key] = set(t, s, key, 0, "value")
	}
	update := s.update
	s.update = func(fn func(*bbolt.Tx) error) error {
		return update(func(tx *bbolt.Tx) error {
			before := tx.Bucket(entriesBucket()).Sequence()
			if err := fn(tx); err != nil {
				return err
			}
			if tx.Bucket(entriesBucket()).Sequence() > before+1 {
				return syscall.ENOSPC
			}
			return nil
		})
	}
	held := holdCommits(s)
	first := goSet(s, "first", 0, "")
	<-held.begun
	answers := make(chan error, len(revisions))
	for key, revision := range revisions {
		go func() { answers <- s.Delete(t.Context(), key, revision) }()
	}
	waitForJoined(s, len(revisions))
	held.release()
	testkit.Must(t, (<-first).err)
	for range revisions {
		testkit.Must(t, <-answers)
	}
	if entries, err := s.List(t.Context(), "k/"); err != nil || len(entries) != 0 {
		t.Errorf("%d entries are left, %v", len(entries), err)
	}
}

// The room is there again after a restart, and a disk that is full then is no reason not to start.
func TestTheReserveIsInTheFile(t *testing.T) {
	path := storePath(t)
	for range 2 {
		s := testkit.Value(Open(Config{Path: path, Log: testkit.Quiet()}))(t)
		set(t, s, fmt.Sprint("k", s.durable.Load()), 0, "v")
		end := used(t, s)
		testkit.Must(t, s.Close())
		info := testkit.Value(os.Stat(path))(t)
		if info.Size() < end+DefaultReserveBytes {
			t.Errorf("the file has %d bytes, %d of them in use", info.Size(), end)
		}
		testkit.Must(t, Check(path))
	}
}
