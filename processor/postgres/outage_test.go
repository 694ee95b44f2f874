package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/test/parts"
)

// calls are one of each, as the owner of partition 0.
func calls(s *Store, l processor.Lease, c processor.Checkpoint, f processor.Entry) map[string]func(ctx context.Context) error {
	g := testGroup
	return map[string]func(ctx context.Context) error{
		"Leases":      func(ctx context.Context) error { _, err := s.Leases(ctx, g); return err },
		"Claim":       func(ctx context.Context) error { _, err := s.Claim(ctx, g, []processor.Lease{l}); return err },
		"Checkpoints": func(ctx context.Context) error { _, err := s.Checkpoints(ctx, g); return err },
		"Begin":       func(ctx context.Context) error { _, err := s.Begin(ctx, g, l); return err },
		"Save":        func(ctx context.Context) error { _, err := s.Save(ctx, g, l, c); return err },
		"Force":       func(ctx context.Context) error { _, err := s.Force(ctx, g, c); return err },
		"Facts":       func(ctx context.Context) error { _, err := s.Entries(ctx, g, ""); return err },
		"Put":         func(ctx context.Context) error { _, err := s.Put(ctx, g, f); return err },
		"Remove":      func(ctx context.Context) error { return s.Remove(ctx, g, f) },
		"Watch": func(ctx context.Context) error {
			return s.Watch(ctx, g, func() {}, make(chan struct{}))
		},
	}
}

// TestADatabaseThatIsDownIsAnErrorAndNeverAnAnswer; it comes back with what it had. // P3, P8
func TestADatabaseThatIsDownIsAnErrorAndNeverAnAnswer(t *testing.T) {
	ctx := t.Context()
	server := parts.StartPostgres(t)
	s := New(connect(t, server.Database(t)), Config{})
	o := take(t, s, "a", processor.Lease{})
	o.saved.Sequence = 7
	saved, err := s.Save(ctx, testGroup, o.lease, o.saved)
	testkit.Must(t, err)
	entry, err := s.Put(ctx, testGroup, processor.Entry{Key: "presence/a"})
	testkit.Must(t, err)
	server.Stop(t)
	for name, call := range calls(s, o.lease, saved, entry) {
		if err := call(ctx); err == nil || errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Start(t)
	for _, name := range []string{"Leases", "Checkpoints", "Facts", "Begin", "Save", "Claim", "Remove"} {
		testkit.Check(t, calls(s, o.lease, saved, entry)[name](ctx), "%s after the restart", name)
	}
}

// TestAKilledDatabaseKeepsWhatItAcknowledged, checkpoint by checkpoint; the one whose answer was
// lost may be there or not. // P3, P7
func TestAKilledDatabaseKeepsWhatItAcknowledged(t *testing.T) {
	const savers, enough = 3, 60
	server := parts.StartPostgres(t)
	s := New(connect(t, server.Database(t)), Config{})
	var (
		wg   sync.WaitGroup
		far  = make(chan struct{}, savers)
		last [savers]int64 // acknowledged; each written by one goroutine
	)
	for i := range savers {
		lease := processor.Lease{Partition: fmt.Sprint(i), Owner: "a", Epoch: 1}
		testkit.Must(t, testkit.Err(s.Claim(t.Context(), testGroup, []processor.Lease{lease})))
		c, err := s.Begin(t.Context(), testGroup, lease)
		testkit.Must(t, err)
		wg.Go(func() {
			for n := int64(1); ; n++ {
				c.Sequence = n
				if c, err = s.Save(t.Context(), testGroup, lease, c); err != nil {
					return
				}
				last[i] = n
				if n == enough {
					far <- struct{}{}
				}
			}
		})
	}
	<-far
	server.Kill(t)
	wg.Wait()
	server.Start(t)
	all, err := s.Checkpoints(t.Context(), testGroup)
	if err != nil || len(all) != savers {
		t.Fatalf("read %+v, %v", all, err)
	}
	for _, c := range all {
		var i int
		fmt.Sscan(c.Partition, &i)
		if c.Sequence != last[i] && c.Sequence != last[i]+1 {
			t.Errorf("partition %d has %d, acknowledged was %d", i, c.Sequence, last[i])
		}
	}
}

// TestALostAnswerIsNeitherSuccessNorConflict: a write that was made is not repeated, which would find
// itself in its way. // P3
func TestALostAnswerIsNeitherSuccessNorConflict(t *testing.T) {
	ctx := t.Context()
	url := parts.Postgres(t)
	steady := New(connect(t, url), Config{})
	o := take(t, steady, "a", processor.Lease{})
	for name, change := range map[string]func(s *Store) error{
		"Claim": func(s *Store) error { _, err := s.Claim(ctx, testGroup, []processor.Lease{o.lease}); return err },
		"Save":  func(s *Store) error { _, err := s.Save(ctx, testGroup, o.lease, o.saved); return err },
		"Put": func(s *Store) error {
			_, err := s.Put(ctx, testGroup, processor.Entry{Key: "presence/a"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := versions(t, steady)
			f := &fault{answered: true}
			s := New(f.connect(t, url), Config{})
			testkit.Must(t, testkit.Err(s.Leases(ctx, testGroup))) // connected, and the tables found
			f.at = f.writes + 2                                    // the statement is prepared, then executed
			if err := change(s); err == nil || errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrFenced) {
				t.Errorf("%s: %v", name, err)
			}
			if versions(t, steady) == before {
				t.Errorf("%s was not made, so nothing was proved", name)
			}
		})
	}
}

// versions tells states of all records apart.
func versions(t *testing.T, s *Store) string {
	t.Helper()
	leases, err := s.Leases(t.Context(), testGroup)
	all, err2 := s.Checkpoints(t.Context(), testGroup)
	entries, err3 := s.Entries(t.Context(), testGroup, "")
	testkit.Must(t, errors.Join(err, err2, err3))
	return fmt.Sprint(leases, all, entries)
}

// TestAWatchGoesOnWhenItsConnectionIsCut and tells of a change, since some may have been missed. // P8
func TestAWatchGoesOnWhenItsConnectionIsCut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := New(connect(t, parts.Postgres(t)), Config{})
	ready, changed, ended := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Watch(ctx, testGroup, func() { close(ready) }, changed); ctx.Err() == nil {
			t.Errorf("the watch ended: %v", err)
		}
	}()
	<-ready
	for i := range 3 {
		cut, err := s.pool.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and query like 'listen %'`)
		if err != nil || cut.RowsAffected() != 1 {
			t.Fatalf("cut %d connections: %v", cut.RowsAffected(), err)
		}
		<-changed // it listens again
		testkit.Must(t, testkit.Err(s.Put(ctx, testGroup, processor.Entry{Key: "next/0", Value: []byte{byte(i)}, Version: s.only(t)})))
		<-changed
	}
	cancel()
	<-ended
}

// only is the version of the only entry, if there is one.
func (s *Store) only(t *testing.T) processor.Version {
	t.Helper()
	entries, err := s.Entries(t.Context(), testGroup, "")
	testkit.Must(t, err)
	if len(entries) == 0 {
		return ""
	}
	return entries[0].Version
}
