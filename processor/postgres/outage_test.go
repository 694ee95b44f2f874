package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"
	"github.com/eventyard/eventyard/test/parts"
)

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
	for name, call := range storetest.Calls(s, testGroup, o.lease, saved, entry) {
		storetest.WantUnknown(t, name, call(ctx))
	}
	server.Start(t)
	for _, name := range []string{"Leases", "Checkpoints", "Entries", "Begin", "Save", "Claim", "Remove"} {
		testkit.Check(t, storetest.Calls(s, testGroup, o.lease, saved, entry)[name](ctx), "%s after the restart", name)
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
	for range savers {
		<-far
	}
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

// TestALostAnswerIsNeitherSuccessNorConflict: a write that was made is not repeated, which would
// find itself in its way. // P3
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
			before := storetest.Records(t, steady, testGroup)
			f := &fault{answered: true}
			s := New(f.connect(t, url), Config{})
			testkit.Must(t, testkit.Err(s.Leases(ctx, testGroup))) // connected, and the tables found
			f.at = f.writes + 2                                    // the statement is prepared, then executed
			storetest.WantUnknown(t, name, change(s))
			if storetest.Records(t, steady, testGroup) == before {
				t.Errorf("%s was not made, so nothing was proved", name)
			}
		})
	}
}

// TestAWatchGoesOnWhenItsConnectionIsCut and tells of a change, since some may have been missed.
// P8
func TestAWatchGoesOnWhenItsConnectionIsCut(t *testing.T) {
	s := New(connect(t, parts.Postgres(t)), Config{})
	storetest.WatchThroughCuts(t, s, testGroup, func() {
		cut, err := s.pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and query like 'listen %'`)
		// One that was cut before may be among them: the server shows it until its process has ended.
		if err != nil || cut.RowsAffected() < 1 {
			t.Fatalf("cut %d connections: %v", cut.RowsAffected(), err)
		}
	})
}
