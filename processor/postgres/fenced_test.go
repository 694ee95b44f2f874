package postgres

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/test/parts"
)

// TestASaveThatWaitedForTheNextOwnersBeginIsFenced: what it saw of the lease was from before its
// wait. // P7
func TestASaveThatWaitedForTheNextOwnersBeginIsFenced(t *testing.T) {
	ctx := t.Context()
	url := parts.Postgres(t)
	s := New(connect(t, url), Config{})
	a := take(t, s, "a", processor.Lease{})
	tx, err := connect(t, url).Begin(ctx)
	testkit.Must(t, err)
	defer tx.Rollback(ctx)
	// What the next owner's Begin does to the row, not yet committed.
	testkit.Must(t, testkit.Err(tx.Exec(ctx, s.sql.Replace("update {checkpoints} set version = 'next', fence = 2"))))
	saved := make(chan error)
	go func() {
		_, err := s.Save(ctx, testGroup, a.lease, a.saved)
		saved <- err
	}()
	awaitBlocked(t, s)
	claim(t, s, "b", a.lease)
	testkit.Must(t, tx.Commit(ctx))
	testkit.ErrorIs(t, <-saved, processor.ErrFenced, "the former owner is told")
}

// awaitBlocked waits until some session waits for another's lock.
func awaitBlocked(t *testing.T, s *Store) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		var blocked bool
		err := s.pool.QueryRow(t.Context(), "select exists (select from pg_locks where not granted)").Scan(&blocked)
		if err != nil || time.Now().After(end) {
			t.Fatalf("nobody waits: %v", err)
		}
		if blocked {
			return
		}
	}
}

// TestStatementsAreRepeatedWhereTheDatabaseIsolatesMore than by default: a serialization failure is
// none of the caller's. // P8
func TestStatementsAreRepeatedWhereTheDatabaseIsolatesMore(t *testing.T) {
	ctx := t.Context()
	url := parts.Postgres(t)
	s := New(connect(t, url+"&default_transaction_isolation=serializable"), Config{})
	a := take(t, s, "a", processor.Lease{})
	tx, err := connect(t, url).Begin(ctx)
	testkit.Must(t, err)
	defer tx.Rollback(ctx)
	// The former owner saves while the new one begins.
	testkit.Must(t, testkit.Err(tx.Exec(ctx, s.sql.Replace("update {checkpoints} set version = 'saved', sequence = 7"))))
	lease := claim(t, s, "b", a.lease)
	begun := make(chan error)
	go func() {
		c, err := s.Begin(ctx, testGroup, lease)
		if err == nil && c.Sequence != 7 {
			t.Errorf("begin gave %+v", c)
		}
		begun <- err
	}()
	awaitBlocked(t, s)
	testkit.Must(t, tx.Commit(ctx))
	testkit.Check(t, <-begun)
}
