package retrylog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

func (y *yard) wantTaken(s *Parked, limit, maxBytes int, want string) []Entry {
	y.t.Helper()
	got := testkit.Value(s.TryTake(context.Background(), limit, maxBytes))(y.t)
	var found []string
	for _, e := range got {
		found = append(found, nameOf(e.Delivery))
	}
	testkit.Equal(y.t, strings.Join(found, " "), want, "taken: %q", found)
	return got
}

func (y *yard) wantLen(s *Parked, want int64) {
	y.t.Helper()
	testkit.Equal(y.t, testkit.Value(s.Len(context.Background()))(y.t), want, "the parked log")
}

// wantForgotten wants a subscription to have no cursor.
func (y *yard) wantForgotten(subscription string) {
	y.t.Helper()
	_, known := y.parkedBook(subscription).find(subscription)
	testkit.Equal(y.t, known, false, "the cursor of %s is still there", subscription)
}

// wantCount wants so many to wait, all in one retry log.
func (y *yard) wantCount(n int64) {
	y.t.Helper()
	got := y.Waiting("mailer2345678")
	if len(got) != 1 || got[0].Count != n {
		y.t.Errorf("waiting: %v, want %d", got, n)
	}
}

func (y *yard) shelve(s *Parked, names ...string) {
	y.t.Helper()
	var all []pending.Delivery
	for _, name := range names {
		all = append(all, thing(name))
	}
	testkit.Must(y.t, s.Put(context.Background(), all))
}

// G7: what cannot be sent waits on the parked log, first in, first out.
func TestParked(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		s := y.Parked("s")
		if y.Parked("s") != s || y.Parked("t") == s {
			t.Error("parked logs are mixed up")
		}
		y.wantTaken(s, 10, 1<<20, "")
		y.wantLen(s, 0)
		y.shelve(s, "a", "b", "c")
		y.shelve(s, "d")
		y.shelve(y.Parked("t"), "x")
		y.wantLen(s, 4)
		first := y.wantTaken(s, 2, 1<<20, "a b")
		y.wantLen(s, 4)
		y.wantTaken(s, 10, 1<<20, "c d") // and not again what was given
		y.wantTaken(s, 10, 1<<20, "")
		first[1].Done()
		first[1].Done()
		y.wantLen(s, 3)
		y.shelve(s, "e")
		last := y.wantTaken(s, 10, 1<<20, "e")
		y.wantLen(s, 4)
		testkit.Must(t, y.Save(t.Context()))

		y.restart() // a holds the cursor
		s = y.Parked("s")
		y.wantLen(s, 5)
		doneAll(y.wantTaken(s, 3, 1<<20, "a b c"))
		last[0].Done() // of a process that has ended: nobody minds
		y.wantLen(s, 2)
		testkit.Must(t, y.Save(t.Context()))
		y.kill()
		s = y.Parked("s")
		y.wantLen(s, 2)
		y.wantTaken(s, 100, 1<<20, "d e")
		y.wantTaken(y.Parked("t"), 100, 1<<20, "x")
	})
}

func TestParkedGivesAboutSoManyBytes(t *testing.T) {
	y := newYard(t, Config{})
	s := y.Parked("s")
	for i := range 6 {
		p := thing(fmt.Sprint(i))
		p.Event = append(p.Event, make([]byte, 1000)...)
		testkit.Must(t, s.Put(t.Context(), []pending.Delivery{p}))
	}
	y.wantTaken(s, 10, 2000, "0 1")
	y.wantTaken(s, 10, 2, "2") // one at least
	y.wantTaken(s, 0, 2000, "")
	y.wantTaken(s, 10, 1<<20, "3 4 5")
}

// What is no pending delivery is passed, and does not make a parked log seem empty.
func TestForeignEventsInAParkedLog(t *testing.T) {
	y := newYard(t, Config{})
	s := y.Parked("s")
	y.shelve(s, "a")
	strangers := make([]eventlog.Event, 5)
	for i := range strangers {
		strangers[i].Message = []byte("what?")
	}
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), s.part, eventlog.Batch{Events: strangers})))
	y.shelve(s, "b")
	y.wantTaken(s, 1, 1, "a")
	y.wantTaken(s, 1, 1, "b")
	y.wantTaken(s, 1, 1, "")
	testkit.Equal(t, testutil.ToFloat64(y.metrics.damaged), 5, "told as damaged")
}

// Ten thousand subscriptions that never shelve anything cost nothing, nor do retry logs that are
// not used.
func TestWhatIsNotUsedIsNotTouched(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(time.Minute, thing("a"))
		y.shelve(y.Parked("used"), "a")
		y.restart()
		y.run()
		for i := range 10_000 {
			s := y.Parked(fmt.Sprintf("sub%d", i))
			y.wantTaken(s, 10, 1000, "")
			y.wantLen(s, 0)
		}
		y.wantAfter(time.Hour, "a")
		y.wantTaken(y.Parked("used"), 10, 1000, "a")
		testkit.Equal(t, y.faults.Count(logtest.OpPartition), 2, "logs were touched")
	})
}

// A parked log that is forgotten is gone, with its cursor, and stays so.
func TestForget(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.run()
		s := y.Parked("s")
		y.shelve(s, "a", "b")
		y.shelve(y.Parked("t"), "x")
		taken := y.wantTaken(s, 1, 1000, "a")
		testkit.Must(t, y.Forget(t.Context(), "s"))
		testkit.Must(t, y.Forget(t.Context(), "s"))
		testkit.Must(t, y.Forget(t.Context(), "never used"[:5]))
		taken[0].Done()
		for _, s := range []*Parked{s, y.Parked("s")} {
			testkit.ErrorIs(t, s.Put(t.Context(), things(1)), eventlog.ErrRemoved, "a put on a forgotten parked log")
		}
		testkit.ErrorIs(t, testkit.Err(s.TryTake(t.Context(), 1, 1)), eventlog.ErrRemoved, "a take from a forgotten parked log")
		time.Sleep(time.Minute)
		if _, err := y.mem.List("log/shelf-s"); err == nil {
			t.Error("its log is still there")
		}
		y.restart()
		y.wantForgotten("s")
		y.wantLen(y.Parked("s"), 0)
		y.wantTaken(y.Parked("t"), 10, 1000, "x")
	})
}

// A removal that failed half way can be done again.
func TestForgetAgain(t *testing.T) {
	y := newYard(t, Config{})
	y.shelve(y.Parked("s"), "a")
	y.meta.Inject(failing(meta.ErrNoSpace))
	testkit.ErrorIs(t, y.Forget(t.Context(), "s"), meta.ErrNoSpace, "forget")
	y.meta.Inject(nil)
	y.restart()
	if !testengine.OverServers() { // which know that the log is gone for good
		y.wantLen(y.Parked("s"), 0)
	}
	testkit.Must(t, y.Forget(t.Context(), "s"))
	y.wantForgotten("s")
}

// A parked log that is forgotten while it comes into being leaves no cursor, which nobody would
// ever remove.
func TestForgetDuringTheFirstPut(t *testing.T) {
	y := newYard(t, Config{})
	var forgetting sync.WaitGroup
	for i := range 20 {
		name := fmt.Sprint("s", i)
		meddle := sync.OnceFunc(func() {
			forgetting.Go(func() {
				testkit.Check(t, y.Forget(context.Background(), name))
			})
			for range 1000 {
				runtime.Gosched() // it may get as far as it can
			}
		})
		y.meta.Inject(func(metatest.Op) error { meddle(); return nil }) // when the log is open, and its cursor to be stored
		if err := y.Parked(name).Put(t.Context(), things(1)); err != nil && !errors.Is(err, eventlog.ErrRemoved) {
			t.Error(err)
		}
		forgetting.Wait()
		testkit.Must(t, y.Save(t.Context()))
		y.wantForgotten(name)
		testkit.ErrorIs(t, y.Parked(name).Put(t.Context(), things(1)), eventlog.ErrRemoved, "a put on a forgotten parked log")
	}
}
