package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Entries that H1 (hubs, groups), P1 (leases) and P7 (checkpoints) rest upon.
func TestContract(t *testing.T) {
	for name, noSync := range map[string]bool{"synced": false, "left to the operating system": true} {
		t.Run(name, func(t *testing.T) {
			metatest.Run(t, func(t *testing.T) meta.Store {
				s := openStore(t, Config{NoSync: noSync})
				t.Cleanup(func() { checkAfterClose(t, s) })
				return s
			})
		})
	}
}

// checkAfterClose lets every test of the suite end with a check of its file.
func checkAfterClose(t *testing.T, s *Store) {
	path := s.db.file.Name()
	testkit.Check(t, s.Close(), "close")
	testkit.Check(t, Check(path))
}

func TestContractAcrossReopening(t *testing.T) {
	metatest.RunDurable(t, func(t *testing.T) (meta.Store, func() meta.Store) {
		path := storePath(t)
		s := openStore(t, Config{Path: path})
		return s, func() meta.Store {
			testkit.Must(t, s.Close())
			s = openStore(t, Config{Path: path, MustExist: true})
			return s
		}
	})
}

// A store that has gone missing is not replaced by an empty one where logs speak of it.
func TestAStoreThatMustExistIsNotCreated(t *testing.T) {
	path := storePath(t)
	_, err := Open(Config{Path: path, MustExist: true})
	testkit.MustErrorIs(t, err, fs.ErrNotExist, "Open")
	for _, word := range []string{path, "restore", "backup", "move the log folder away"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("the refusal has left %d files, %v", len(left), err)
	}

	set(t, openStore(t, Config{Path: path}), "a", 0, "made without the demand")
}

func TestAStoreIsNotCreatedWithoutItsFolder(t *testing.T) {
	_, err := Open(Config{Path: filepath.Join(t.TempDir(), "nowhere", "meta.db")})
	testkit.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAnOpenStoreIsLocked(t *testing.T) {
	path := storePath(t)
	s := openStore(t, Config{Path: path})
	testkit.ErrorIs(t, testkit.Err(Open(Config{Path: path})), vfs.ErrLocked, "second Open")
	testkit.ErrorIs(t, Check(path), vfs.ErrLocked, "Check of an open store")
	set(t, s, "a", 0, "still ours")
	testkit.Must(t, s.Close())
	wantValue(t, openStore(t, Config{Path: path}), "a", "still ours")
}

// Changes that queue up behind a commit share the next one, and a conflict among them
// is one caller's alone.
func TestWaitingChangesShareOneCommit(t *testing.T) {
	s := openStore(t, Config{})
	held := holdCommits(s)
	first := goSet(s, "first", 0, "")
	<-held.begun

	const n = 20
	taken := goAll(n, func(i int) chan answer { return goSet(s, fmt.Sprintf("own/%d", i), 0, "mine") })
	rivals := goAll(n, func(i int) chan answer { return goSet(s, "one", 0, strconv.Itoa(i)) })
	waitForJoined(s, 2*n)
	held.release()

	if a := <-first; a.err != nil {
		t.Fatal(a.err)
	}
	revisions := make(map[meta.Revision]bool)
	for _, c := range taken {
		if a := <-c; a.err != nil || revisions[a.revision] {
			t.Errorf("a change of an own key got revision %d, %v", a.revision, a.err)
		} else {
			revisions[a.revision] = true
		}
	}
	won := 0
	for _, c := range rivals {
		if a := <-c; a.err == nil {
			won++
		} else if !errors.Is(a.err, meta.ErrConflict) {
			t.Errorf("a rival got %v, want ErrConflict", a.err)
		}
	}
	testkit.Equal(t, won, 1, "rivals won")
	testkit.Equal(t, held.count(), 2, "commits were made")
}

func TestACallerThatLeavesBeforeTheCommitTakesItsChangeAlong(t *testing.T) {
	s := openStore(t, Config{})
	held := holdCommits(s)
	first := goSet(s, "first", 0, "")
	<-held.begun
	leader := goSet(s, "leader", 0, "stays")
	waitForJoined(s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := make(chan error)
	go func() {
		_, err := s.CompareAndSet(ctx, "leaver", 0, []byte("gone"))
		leaver <- err
	}()
	waitForJoined(s, 2)
	cancel()
	if err := <-leaver; !errors.Is(err, context.Canceled) {
		t.Errorf("the leaver got %v, want its context's error", err)
	}
	held.release()
	if a, b := <-first, <-leader; a.err != nil || b.err != nil {
		t.Error(a.err, b.err)
	}
	testkit.ErrorIs(t, testkit.Err(s.Get(t.Context(), "leaver")), meta.ErrNotFound, "the leaver's change")
	wantValue(t, s, "leader", "stays")
}

// A batch takes no more than its share; what comes after opens the next.
func TestABatchIsBounded(t *testing.T) {
	s := openStore(t, Config{NoSync: true})
	held := holdCommits(s)
	first := goSet(s, "first", 0, "")
	<-held.begun
	large := string(make([]byte, meta.MaxValueBytes))
	start := func(i int) chan answer { return goSet(s, fmt.Sprintf("k/%d", i), 0, large) }
	const fitting = maxBatchBytes / meta.MaxValueBytes
	answers := append(goAll(fitting-1, start), first)
	waitForJoined(s, fitting-1)
	answers = append(answers, start(fitting)) // fills the batch
	waitForJoined(s, 0)
	answers = append(answers, start(fitting+1))
	waitForJoined(s, 1)
	held.release()
	for _, c := range answers {
		if a := <-c; a.err != nil {
			t.Error(a.err)
		}
	}
	testkit.Equal(t, held.count(), 3, "commits were made")
}

func TestASlowWatcherGetsOneChangePerKey(t *testing.T) {
	s := openStore(t, Config{NoSync: true})
	watcher, err := s.Watch(t.Context(), "k/")
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(watcher.Next()))
	var a, b meta.Revision
	for i := range 100 {
		a = set(t, s, "k/a", a, strconv.Itoa(i))
		b = set(t, s, "k/b", b, strconv.Itoa(i))
	}
	testkit.Must(t, s.Delete(t.Context(), "k/a", a))
	changes, err := watcher.Next()
	if err != nil || len(changes) != 2 {
		t.Fatalf("%d changes were told, %v, want 2", len(changes), err)
	}
	if c := changes[0]; c.Key != "k/b" || string(c.Value) != "99" || c.Revision != b {
		t.Errorf("told %+v first, want the older change, of k/b", c)
	}
	if c := changes[1]; c.Key != "k/a" || !c.Deleted || c.Revision != b+1 {
		t.Errorf("told %+v second, want the deletion of k/a", c)
	}
}

func TestAWatchThatEndedIsNotKept(t *testing.T) {
	s := openStore(t, Config{NoSync: true})
	ctx, cancel := context.WithCancel(t.Context())
	watcher := testkit.Value(s.Watch(ctx, ""))(t)
	testkit.Must(t, testkit.Err(watcher.Next()))
	cancel()
	for s.watches() > 0 { // the test's own time limit is the only way out of a leak
		runtime.Gosched()
	}
}

func TestCloseWaitsForTheCommitUnderWay(t *testing.T) {
	path := storePath(t)
	s := openStore(t, Config{Path: path})
	held := holdCommits(s)
	underWay := goSet(s, "a", 0, "under way")
	<-held.begun
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-s.closed
	testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), "b", 0, nil)), meta.ErrClosed,
		"a change after the beginning of Close")
	held.release()
	if a := <-underWay; a.err != nil {
		t.Errorf("the commit under way: %v", a.err)
	}
	testkit.Check(t, <-closed)
	wantValue(t, openStore(t, Config{Path: path}), "a", "under way")
}

// Everything at once, and Close in the midst: each call ends with success or with
// ErrClosed, and what was acknowledged is there afterwards.
func TestCloseInAStorm(t *testing.T) {
	for range 5 {
		path := storePath(t)
		s := openStore(t, Config{Path: path})
		acknowledged := make([]int, 8)
		var all sync.WaitGroup
		for w := range acknowledged {
			all.Go(func() { acknowledged[w] = writeUntilClosed(t, s, w) })
			all.Go(func() { watchUntilClosed(t, s) })
		}
		all.Go(func() {
			for !allWrote(t, s, len(acknowledged)) { // a writer may be slow to its first
				runtime.Gosched()
			}
			_ = s.Close()
		})
		all.Wait()
		s = openStore(t, Config{Path: path})
		for w, n := range acknowledged {
			wantValue(t, s, fmt.Sprintf("w/%d", w), strconv.Itoa(n))
		}
	}
}

// allWrote says whether each writer has come to its tenth change.
func allWrote(t *testing.T, s *Store, writers int) bool {
	for w := range writers {
		if entry, err := s.Get(t.Context(), fmt.Sprintf("w/%d", w)); err != nil || len(entry.Value) < 2 {
			return false
		}
	}
	return true
}

func writeUntilClosed(t *testing.T, s *Store, w int) (acknowledged int) {
	var revision meta.Revision
	for n := 1; ; n++ {
		next, err := s.CompareAndSet(t.Context(), fmt.Sprintf("w/%d", w), revision, []byte(strconv.Itoa(n)))
		if err != nil {
			testkit.ErrorIs(t, err, meta.ErrClosed)
			return n - 1
		}
		revision = next
	}
}

func watchUntilClosed(t *testing.T, s *Store) {
	watcher, err := s.Watch(t.Context(), "")
	for err == nil {
		_, err = watcher.Next()
	}
	testkit.ErrorIs(t, err, meta.ErrClosed)
}
