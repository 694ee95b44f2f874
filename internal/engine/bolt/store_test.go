package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/meta"
	"github.com/eventyard/eventyard/internal/meta/metatest"
	"github.com/eventyard/eventyard/internal/vfs"
)

// childMode names the part that this test binary plays when a test has started it
// anew, to be killed or to live with failing storage.
const childMode = "EVENTYARD_BOLT_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := runChild(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func storePath(t testing.TB) string { return filepath.Join(t.TempDir(), "meta.db") }

func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = storePath(t)
	}
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func set(t testing.TB, s *Store, key string, expected meta.Revision, value string) meta.Revision {
	t.Helper()
	revision, err := s.CompareAndSet(t.Context(), key, expected, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func wantValue(t *testing.T, s *Store, key, value string) {
	t.Helper()
	if entry, err := s.Get(t.Context(), key); err != nil || string(entry.Value) != value {
		t.Errorf("get %q gave %q, %v, want %q", key, entry.Value, err, value)
	}
}

// Facts that H1 (hubs, groups), P1 (leases) and P7 (checkpoints) rest upon.
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
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := Check(path); err != nil {
		t.Error(err)
	}
}

func TestContractAcrossReopening(t *testing.T) {
	metatest.RunDurable(t, func(t *testing.T, dir string) (meta.Store, func()) {
		s := openStore(t, Config{Path: filepath.Join(dir, "meta.db")})
		return s, func() { _ = s.Close() }
	})
}

func TestASecondOpenerIsToldThatTheStoreIsLocked(t *testing.T) {
	path := storePath(t)
	s := openStore(t, Config{Path: path})
	if _, err := Open(Config{Path: path}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second Open gave %v, want ErrLocked", err)
	}
	if err := Check(path); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("Check of an open store gave %v, want ErrLocked", err)
	}
	set(t, s, "a", 0, "still ours")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
	if won != 1 {
		t.Errorf("%d rivals won, want 1", won)
	}
	if got := held.count(); got != 2 {
		t.Errorf("%d commits were made, want 2", got)
	}
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
	if _, err := s.Get(t.Context(), "leaver"); !errors.Is(err, meta.ErrNotFound) {
		t.Errorf("the leaver's change: %v, want ErrNotFound", err)
	}
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
	if got := held.count(); got != 3 {
		t.Errorf("%d commits were made, want 3: the first, a full one, the rest", got)
	}
}

func TestASlowWatcherIsToldOneChangePerKey(t *testing.T) {
	s := openStore(t, Config{NoSync: true})
	watcher, err := s.Watch(t.Context(), "k/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Next(); err != nil {
		t.Fatal(err)
	}
	var a, b meta.Revision
	for i := range 100 {
		a = set(t, s, "k/a", a, strconv.Itoa(i))
		b = set(t, s, "k/b", b, strconv.Itoa(i))
	}
	if err := s.Delete(t.Context(), "k/a", a); err != nil {
		t.Fatal(err)
	}
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
	watcher, err := s.Watch(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Next(); err != nil {
		t.Fatal(err)
	}
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
	if _, err := s.CompareAndSet(t.Context(), "b", 0, nil); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("a change after the beginning of Close gave %v, want ErrClosed", err)
	}
	held.release()
	if a := <-underWay; a.err != nil {
		t.Errorf("the commit under way: %v", a.err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
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
			for {
				if _, err := s.Get(t.Context(), "w/0"); errors.Is(err, meta.ErrClosed) {
					return
				} else if entry, err := s.Get(t.Context(), "w/0"); err == nil && len(entry.Value) > 1 {
					_ = s.Close()
				}
			}
		})
		all.Wait()
		s = openStore(t, Config{Path: path})
		for w, n := range acknowledged {
			wantValue(t, s, fmt.Sprintf("w/%d", w), strconv.Itoa(n))
		}
	}
}

func writeUntilClosed(t *testing.T, s *Store, w int) (acknowledged int) {
	var revision meta.Revision
	for n := 1; ; n++ {
		next, err := s.CompareAndSet(t.Context(), fmt.Sprintf("w/%d", w), revision, []byte(strconv.Itoa(n)))
		if err != nil {
			if !errors.Is(err, meta.ErrClosed) {
				t.Error(err)
			}
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
	if !errors.Is(err, meta.ErrClosed) {
		t.Error(err)
	}
}

// answer is what a change made in the background came to.
type answer struct {
	revision meta.Revision
	err      error
}

func goSet(s *Store, key string, expected meta.Revision, value string) chan answer {
	c := make(chan answer, 1)
	go func() {
		revision, err := s.CompareAndSet(context.Background(), key, expected, []byte(value))
		c <- answer{revision, err}
	}()
	return c
}

func goAll(n int, start func(i int) chan answer) []chan answer {
	answers := make([]chan answer, n)
	for i := range answers {
		answers[i] = start(i)
	}
	return answers
}

// waitForJoined returns when so many changes are in the batch that takes more, which
// for none means that there is no such batch.
func waitForJoined(s *Store, n int) {
	for {
		s.mu.Lock()
		joined := 0
		if s.joining != nil {
			joined = len(s.joining.changes)
		}
		s.mu.Unlock()
		if joined == n {
			return
		}
		runtime.Gosched()
	}
}

// watches tells how many watches the store keeps.
func (s *Store) watches() int {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	return len(s.board.watchers)
}

// held keeps commits from ending until they are released.
type held struct {
	begun    chan struct{} // closed when the first commit has begun
	released chan struct{}
	mu       sync.Mutex
	commits  int
}

func holdCommits(s *Store) *held {
	h := &held{begun: make(chan struct{}), released: make(chan struct{})}
	update := s.update
	s.update = func(fn func(*bbolt.Tx) error) error {
		h.mu.Lock()
		h.commits++
		if h.commits == 1 {
			close(h.begun)
		}
		h.mu.Unlock()
		<-h.released
		return update(fn)
	}
	return h
}

func (h *held) release() { close(h.released) }

func (h *held) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.commits
}
