package bolt

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
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

// runChild plays the part that childMode names.
func runChild(mode string) error {
	if mode == "write" {
		return writeUntilKilled(os.Args[1:])
	}
	return runStorageChild(mode, os.Args[1:])
}

func storePath(t testing.TB) string { return filepath.Join(t.TempDir(), "meta.db") }

func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = storePath(t)
	}
	cfg.Log = testkit.Quiet()
	cfg.ReserveBytes = cmp.Or(cfg.ReserveBytes, -1) // tests copy the file many times
	s := testkit.Value(Open(cfg))(t)
	t.Cleanup(func() {
		testkit.Check(t, s.Close(), "close")
	})
	return s
}

func set(t testing.TB, s *Store, key string, expected meta.Revision, value string) meta.Revision {
	t.Helper()
	revision := testkit.Value(s.CompareAndSet(t.Context(), key, expected, []byte(value)))(t)
	return revision
}

func wantValue(t *testing.T, s *Store, key, value string) {
	t.Helper()
	if entry, err := s.Get(t.Context(), key); err != nil || string(entry.Value) != value {
		t.Errorf("get %q gave %q, %v, want %q", key, entry.Value, err, value)
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
	n := 0
	for _, alike := range s.board.watchers {
		n += len(alike)
	}
	return n
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
