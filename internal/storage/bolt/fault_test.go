package bolt

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// failBefore makes commits fail while nothing of them can be seen, as when the changed
// pages cannot be written or synced.
func failBefore(s *Store, cause error) (mend func()) {
	update := s.update
	s.update = func(fn func(*bbolt.Tx) error) error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return cause
		})
	}
	return func() { s.update = update }
}

// failAfter makes commits fail when they can be seen already, as when the meta page
// was written and its sync fails; and lets nothing be settled.
func failAfter(s *Store, cause error) (mend func()) {
	update, resync := s.update, s.resync
	s.update = func(fn func(*bbolt.Tx) error) error {
		return errors.Join(s.db.Update(fn), cause)
	}
	s.resync = func() error { return cause }
	return func() { s.update, s.resync = update, resync }
}

func TestACommitThatFailsIsNeverAnsweredWithSuccess(t *testing.T) {
	broken := fmt.Errorf("write page: %w", syscall.EIO)
	full := fmt.Errorf("write page: %w", syscall.ENOSPC)
	worded := fmt.Errorf("file resize error: %s", syscall.ENOSPC)
	quota := fmt.Errorf("write page: %w", syscall.EDQUOT)
	tests := []struct {
		name      string
		fail      func(*Store, error) func()
		cause     error
		uncertain bool
		refused   bool   // for want of room, nothing was changed
		afterward string // what the key holds once storage is well again
	}{
		{"an input/output error before anything can be seen is told as uncertain", failBefore, broken, true, false, "old"},
		{"a full disk before anything can be seen has changed nothing", failBefore, full, false, true, "old"},
		{"so has a full disk of which bbolt has left only the words", failBefore, worded, false, true, "old"},
		{"and a quota that is used up", failBefore, quota, false, true, "old"},
		{"an input/output error at the last sync leaves the change in doubt", failAfter, broken, true, false, "new"},
		{"a full disk at the last sync leaves the change in doubt", failAfter, full, true, false, "new"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := openStore(t, Config{})
			old := set(t, s, "a", 0, "old")
			mend := test.fail(s, test.cause)
			_, err := s.CompareAndSet(t.Context(), "a", old, []byte("new"))
			if err == nil || errors.Is(err, meta.ErrUncertain) != test.uncertain || errors.Is(err, meta.ErrNoSpace) != test.refused {
				t.Errorf("the change gave %v; want ErrUncertain %t, ErrNoSpace %t", err, test.uncertain, test.refused)
			}
			if test.refused && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
				t.Errorf("the change gave %v, without the system's number for its cause", err)
			}
			mend()
			wantValue(t, s, "a", test.afterward)
			entry, err := s.Get(t.Context(), "a")
			testkit.Must(t, err)
			testkit.Equal(t, set(t, s, "a", entry.Revision, "newer"), entry.Revision+1, "the next revision")
		})
	}
}

func TestAFailedCommitIsAnErrorForAllOfIt(t *testing.T) {
	s := openStore(t, Config{})
	mend := failBefore(s, syscall.EIO)
	held := holdCommits(s)
	first := goSet(s, "first", 0, "")
	<-held.begun
	answers := goAll(10, func(i int) chan answer { return goSet(s, "one", 0, "rival") })
	waitForJoined(s, 10)
	held.release()
	for _, c := range append(answers, first) {
		if a := <-c; !errors.Is(a.err, meta.ErrUncertain) {
			t.Errorf("got %v, want ErrUncertain, also for those who lost against a rival that failed", a.err)
		}
	}
	mend()
	if entries, err := s.List(t.Context(), ""); err != nil || len(entries) != 0 {
		t.Errorf("%d entries are there, %v, want none", len(entries), err)
	}
}

// While a change is in doubt nothing is shown and nothing is built upon it.
func TestNothingInDoubtIsShown(t *testing.T) {
	s := openStore(t, Config{})
	old := set(t, s, "k/a", 0, "old")
	watcher, err := s.Watch(t.Context(), "k/")
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(watcher.Next()))

	mend := failAfter(s, syscall.EIO)
	_, err = s.CompareAndSet(t.Context(), "k/a", old, []byte("new"))
	wantUncertain(t, "the change", err)
	_, err = s.Get(t.Context(), "k/a")
	wantUncertain(t, "get", err)
	_, err = s.List(t.Context(), "k/")
	wantUncertain(t, "list", err)
	_, err = s.CompareAndSet(t.Context(), "k/other", 0, nil)
	wantUncertain(t, "another change", err)
	late, err := s.Watch(t.Context(), "k/")
	testkit.Must(t, err)
	_, err = late.Next()
	wantUncertain(t, "the state of a new watch", err)

	mend()
	if state, err := late.Next(); err != nil || len(state) != 1 || string(state[0].Value) != "new" {
		t.Errorf("a watch that asks again was told %v, %v", state, err)
	}
	if changes, err := watcher.Next(); err != nil || len(changes) != 1 || string(changes[0].Value) != "new" || changes[0].Revision != old+1 {
		t.Errorf("the watcher was told %v, %v once the change was settled, want it", changes, err)
	}
	wantValue(t, s, "k/a", "new")
	testkit.ErrorIs(t, testkit.Err(s.Get(t.Context(), "k/other")), meta.ErrNotFound,
		"the change refused meanwhile")
}

func wantUncertain(t *testing.T, what string, err error) {
	t.Helper()
	testkit.ErrorIs(t, err, meta.ErrUncertain, "%s", what)
}

// bbolt shows a transaction before its last sync has ended; we do not.
func TestAReaderDoesNotSeeWhatIsNotYetDurable(t *testing.T) {
	s := openStore(t, Config{})
	old := set(t, s, "a", 0, "old")
	update, looked := s.update, false
	s.update = func(fn func(*bbolt.Tx) error) error {
		if err := update(fn); err != nil {
			return err
		}
		// Here bbolt has the change, and for the store it is not durable yet.
		durable, err := s.viewIfDurable(func(*bbolt.Bucket) error {
			t.Error("a reader was shown a change that is not durable")
			return nil
		})
		looked = true
		if durable || err != nil {
			t.Errorf("durable: %t, %v", durable, err)
		}
		return nil
	}
	set(t, s, "a", old, "new")
	if !looked {
		t.Error("nobody looked")
	}
	wantValue(t, s, "a", "new")
}

func TestAPanicInStorageLeavesNobodyWaiting(t *testing.T) {
	s := openStore(t, Config{})
	update := s.update
	s.update = func(fn func(*bbolt.Tx) error) error {
		return s.db.Update(func(tx *bbolt.Tx) error { panic("page 7 already freed") })
	}
	held := holdCommits(s)
	first := make(chan any, 1)
	go func() {
		defer func() { first <- recover() }()
		_, _ = s.CompareAndSet(t.Context(), "first", 0, nil)
	}()
	<-held.begun
	leader := make(chan any, 1)
	go func() {
		defer func() { leader <- recover() }()
		_, _ = s.CompareAndSet(t.Context(), "leader", 0, nil)
	}()
	waitForJoined(s, 1)
	follower := goSet(s, "follower", 0, "")
	waitForJoined(s, 2)
	held.release()
	if <-first == nil || <-leader == nil {
		t.Error("the panic was swallowed")
	}
	if a := <-follower; !errors.Is(a.err, meta.ErrUncertain) {
		t.Errorf("the follower got %v, want ErrUncertain", a.err)
	}
	s.update = update
	set(t, s, "a", 0, "well again")
}

func TestAFullDiskIsKnownByItsWords(t *testing.T) {
	tests := []struct {
		name string
		err  error
		full bool
	}{
		{"by its number", fmt.Errorf("write: %w", syscall.ENOSPC), true},
		{"by the quota's number", fmt.Errorf("write: %w", syscall.EDQUOT), true},
		{"by its words, where bbolt dropped the number", fmt.Errorf("file resize error: %s", syscall.ENOSPC), true},
		{"and not by any other error", fmt.Errorf("write: %w", syscall.EIO), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			full := asFull(test.err)
			testkit.Equal(t, full != nil, test.full, "asFull(%v)", test.err)
			testkit.Equal(t, errors.Is(full, syscall.ENOSPC) || errors.Is(full, syscall.EDQUOT), test.full, "its number")
		})
	}
}
