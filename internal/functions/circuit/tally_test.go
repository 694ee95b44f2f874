package circuit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

var many = breaker.Policy{Failures: 1_000_000, Within: 30 * time.Second}

func TestTalliesAreWrittenFourTimesASecondAtMost(t *testing.T) {
	inWorld(t, many, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		for range 1000 {
			a.failed(1, false)
			time.Sleep(10 * time.Millisecond)
		}
		if n := a.store.count("put failures"); n < 38 || n > 42 {
			t.Errorf("in ten seconds %d were written", n)
		}
		pass(time.Second)
		b.knows(1000)
		testkit.Equal(t, b.store.count("put failures"), 1, "an instance without failures has written")
	})
}

func TestAQuietFunctionWritesNothingButThatItIsThere(t *testing.T) { // F8
	inWorld(t, many, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Hour)
		reads := a.store.count("entries circuit")
		if n := a.store.count("put failures") + a.store.count("put circuit"); n != 1 || reads > 3600/watchedPoll+2 {
			t.Errorf("%d writes, %d reads", n, reads)
		}
		a.failed(1, false)
		pass(time.Hour)
		// Again and again while it is in the window, and once when it is out of it.
		if n := a.store.count("put failures"); n < 4 || n > 15 {
			t.Errorf("%d writes for one failure", n)
		}
		last := a.store.count("put failures")
		pass(time.Hour)
		if n := a.store.count("put failures"); n != last {
			t.Errorf("%d writes for nothing", n-last)
		}
	})
}

func TestReadsAreFewHoweverMuchChanges(t *testing.T) { // F8
	inWorld(t, many, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		for i := range 1000 { // ten seconds of other entries of the group
			w.put("work/resize/0", fmt.Sprint(i))
			time.Sleep(10 * time.Millisecond)
		}
		if n := a.store.count("entries circuit"); n > 40 {
			t.Errorf("entries of others have it read %d times in ten seconds", n)
		}
		before := a.store.count("entries circuit")
		for range 1000 {
			b.failed(1, false)
			time.Sleep(10 * time.Millisecond)
		}
		if n := a.store.count("entries circuit") - before; n > 105 {
			t.Errorf("failures have it read %d times in ten seconds", n)
		}
	})
}

func TestWhoLeavesTakesItsTallyAway(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.failed(3, false)
		pass(time.Second)
		testkit.MustSlices(t, w.tallies(), []string{"failures/resize/a", "failures/resize/b"})
		a.leave()
		testkit.Slices(t, w.tallies(), []string{"failures/resize/b"}, "is left")
		pass(time.Second)
		b.knows(3) // they happened all the same
		b.failed(3, true)
	})
}

func TestWhoLeavesTakesItsTallyAwayAlsoAfterALostAnswer(t *testing.T) {
	for _, op := range []string{"put failures", "remove failures"} {
		inWorld(t, five, func(t *testing.T, w *world) {
			a := w.start("a")
			a.store.set(a.store.lose, op, 1)
			a.failed(3, false)
			synctest.Wait()
			a.leave()
			if got := w.tallies(); len(got) != 0 {
				t.Errorf("after a lost %s %v is left", op, got)
			}
		})
	}
}

func TestALostTallyIsWrittenAgain(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.startPolling("b")
		a.store.set(a.store.lose, "put failures", 2)
		a.failed(1, false)
		pass(time.Second)
		a.failed(1, false)
		pass(2 * time.Second)
		b.knows(2)
		// Somebody took it for dead.
		w.remove("failures/resize/a")
		a.failed(1, false)
		pass(2 * time.Second)
		b.knows(3)
	})
}

func TestTheDeadAreForgotten(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b, c := w.start("a"), w.start("b"), w.startPolling("c")
		a.failed(3, false)
		b.failed(1, false)
		pass(time.Second)
		a.die()
		pass(five.Within * staleWindows)
		if got := w.tallies(); len(got) != 3 {
			t.Fatalf("after ten windows there are %v", got)
		}
		pass(6 * time.Minute)
		if got := w.tallies(); slices.Contains(got, "failures/resize/a") {
			t.Errorf("%v", got)
		}
		// Who was only quiet loses nothing by it.
		b.failed(2, false)
		pass(time.Second)
		c.knows(2)
		testkit.Slices(t, w.tallies(), []string{"failures/resize/b", "failures/resize/c"})
	})
}

func TestATallyThatWasThereMayBeOfLongAgo(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		w.put("failures/resize/dead", `{"term":0,"buckets":[{"age":0,"n":100}],"total":100}`)
		w.put("failures/resize/strange", `?`)
		pass(time.Hour)
		a := w.start("a")
		a.failed(5, false)
		pass(time.Minute)
		a.knows(0)
		a.is(breaker.Closed)
	})
}

func TestANewcomerCountsWhatTheLivingHave(t *testing.T) { // F5
	for name, start := range map[string]func(*world, string) *played{"watched": (*world).start, "polled": (*world).startPolling} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, five, func(t *testing.T, w *world) {
				a := start(w, "a")
				a.failed(4, false)
				pass(10 * time.Second)
				b := start(w, "b")
				pass(five.Within/10 + time.Second)
				b.knows(4)
				a.die()
				pass(10 * time.Second)
				b.knows(4)
				b.failed(2, true)
				pass(7*time.Second + time.Second)
				if r, n := b.Record(); n != 0 {
					t.Errorf("%+v, %d", r, n)
				}
			})
		})
	}
}

func TestWhatIsFoundAfterAnOutageCountsWhenItsAgeIsKnown(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.startPolling("a"), w.startPolling("b")
		pass(time.Second)
		b.store.setDown(true)
		a.failed(2, false)
		pass(2 * time.Minute)
		a.failed(3, false)
		pass(10 * time.Second)
		b.store.setDown(false)
		// The first look finds a tally that was written at any time of two minutes.
		pass(time.Second)
		pass(five.Within/10 + time.Second)
		b.knows(3)
		pass(14 * time.Second)
		b.knows(3)
		pass(5 * time.Second)
		b.knows(0)
	})
}

func TestWhatADeadInstanceWroteDuringAnOutageDoesNotCount(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.startPolling("a"), w.startPolling("b")
		a.failed(2, false)
		pass(2 * time.Second)
		b.knows(2)
		b.store.setDown(true)
		a.failed(3, false)
		pass(5 * time.Second)
		a.die()
		pass(10 * time.Second)
		b.store.setDown(false)
		pass(3 * time.Second)
		b.knows(2) // whose age is known
		pass(time.Minute)
		b.knows(0)
	})
}

func TestFailuresReportedByTheStoreCountAfterASilence(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		for range 3 {
			pass(five.Within + 9*time.Second + 300*time.Millisecond)
			a.failed(3, false)
			pass(500 * time.Millisecond)
			b.knows(3)
		}
	})
}

func TestFailuresWrittenDuringAnOutageAreNotNew(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.startPolling("a")
		f := newFaulty(w.store)
		b := w.startWith("b", f, &gapped{faulty: f, heals: 15 * time.Second})
		pass(5 * time.Second)
		f.setDown(true)
		a.failed(3, false)
		pass(time.Second)
		a.die()
		pass(20 * time.Second)
		w.put("work/resize/0", "of this moment") // is told
		pass(time.Second)
		f.setDown(false)
		pass(5 * time.Second)
		b.knows(0)
	})
}

// gapped can be watched, but for a gap that begins when the store goes down.
type gapped struct {
	*faulty
	heals time.Duration // after so long
	gone  bool
}

func (g *gapped) Watch(ctx context.Context, group processor.Group, ready func(), changed chan<- struct{}) error {
	if g.gone {
		time.Sleep(g.heals)
		return watchable{g.faulty}.Watch(ctx, group, ready, changed)
	}
	g.gone = true
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return watchable{g.faulty}.Watch(ctx, group, ready, changed)
}

func TestAWatchThatGoesDeafIsMadeGoodByPolling(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		a := w.startWith("a", f, deaf{f})
		w.hold()
		pass(watchedPoll * time.Second)
		a.is(breaker.Held)
	})
}

// deaf can be watched, and never tells.
type deaf struct{ *faulty }

func (deaf) Watch(ctx context.Context, _ processor.Group, ready func(), _ chan<- struct{}) error {
	ready()
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestAWatchThatFailsIsPolledForAndTriedAgain(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		broken := &breaking{faulty: f}
		a := w.startWith("a", f, broken)
		for i := range 20 {
			pass(3 * time.Second)
			w.hold()
			pass(time.Second)
			if a.is(breaker.Held); i == 10 {
				broken.well.Store(true)
			}
			w.resume()
			pass(time.Second)
			a.is(breaker.Closed)
		}
		if n := broken.watches.Load(); n < 5 || n > 12 {
			t.Errorf("it was watched %d times", n)
		}
		before := f.count("entries circuit")
		pass(time.Minute)
		if n := f.count("entries circuit") - before; n > 8 {
			t.Errorf("%d reads in a minute, although it can be watched again", n)
		}
	})
}

// breaking can be watched for a moment, until it is well.
type breaking struct {
	*faulty
	well    atomic.Bool
	watches atomic.Int64
}

func (b *breaking) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	b.watches.Add(1)
	if b.well.Load() {
		return watchable{b.faulty}.Watch(ctx, g, ready, changed)
	}
	ready()
	return errors.New("connection lost")
}

func TestAStoreThatCannotBeWatchedAfterAllIsPolled(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		a := w.startWith("a", f, unwatchable{f})
		w.hold()
		pass(time.Second)
		a.is(breaker.Held)
	})
}

type unwatchable struct{ *faulty }

func (unwatchable) Watch(context.Context, processor.Group, func(), chan<- struct{}) error {
	return fmt.Errorf("this server: %w", errors.ErrUnsupported)
}

func TestKeysFit(t *testing.T) {
	long, longer := strings.Repeat("i", 149)+"1", strings.Repeat("i", 149)+"2"
	name := strings.Repeat("f", 100)
	for _, tt := range []struct{ function, instance, want string }{
		{"resize", "host-1:80_x.y$z", "failures/resize/host-1:80_x.y$z"},
		{"resize", long, "failures/resize/" + long},
		{name, strings.Repeat("i", 90), "failures/" + name + "/" + strings.Repeat("i", 90)},
	} {
		t.Run(fmt.Sprintf("a function of %d bytes, an instance of %d", len(tt.function), len(tt.instance)), func(t *testing.T) {
			if got := tallyKey(tt.function, tt.instance); got != tt.want || groupentry.CheckKey(got) != nil {
				t.Errorf("%s", got)
			}
		})
	}
	one, other := tallyKey(name, long), tallyKey(name, longer)
	if one == other || groupentry.CheckKey(one) != nil || groupentry.CheckKey(other) != nil || len(one) != groupentry.MaxKeyBytes {
		t.Errorf("%s and %s", one, other)
	}
}

func TestAStoreThatStaysAwayIsLoggedNowAndThen(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		lines := map[slog.Level]int{}
		f := newFaulty(w.store)
		f.setDown(true)
		m := New(Config{Store: f, Group: group, Function: function, Instance: "a", Log: slog.New(counting{lines})})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		pass(time.Hour)
		if n := f.count("entries circuit"); n < 3000 || n > 4000 {
			t.Errorf("it was tried %d times in an hour", n)
		}
		f.setDown(false)
		pass(time.Hour)
		stop()
		testkit.Check(t, <-ended)
		if warned, reported := lines[slog.LevelWarn], lines[slog.LevelInfo]; warned < 2 || warned > 61 || reported != 1 {
			t.Errorf("%d warnings and %d lines that it is over", warned, reported)
		}
	})
}

// counting counts lines by level; one goroutine logs.
type counting struct{ lines map[slog.Level]int }

func (c counting) Enabled(context.Context, slog.Level) bool      { return true }
func (c counting) Handle(_ context.Context, r slog.Record) error { c.lines[r.Level]++; return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler            { return c }
func (c counting) WithGroup(string) slog.Handler                 { return c }

// F7: an operator finds a function that never had trouble, too; when its last instance has left it
// is gone.
func TestAHealthyFunctionIsFound(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		pass(5 * time.Second) // at other times than they look for the dead
		for range 3 {         // and that stays so, though the tallies of the dead are removed
			pass(time.Hour)
			all, err := Read(t.Context(), w.store, group, "")
			if err != nil || len(all) != 1 || all[0].Function != function || !all[0].Record.Closed() || len(all[0].Tallies) != 2 || all[0].Total != 0 {
				t.Fatalf("found %+v, %v", all, err)
			}
		}
		a.leave()
		b.leave()
		if all, err := Read(t.Context(), w.store, group, ""); err != nil || len(all) != 0 {
			t.Errorf("left behind %+v, %v", all, err)
		}
	})
}

func TestAnOpeningIsLoggedAsAWarning(t *testing.T) {
	inWorld(t, breaker.Policy{Failures: 1, Within: time.Minute}, func(t *testing.T, w *world) {
		var log strings.Builder
		m := New(Config{Store: newFaulty(w.store), Group: group, Function: function, Instance: "a", Policy: w.policy,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		pass(time.Second)
		testkit.Must(t, testkit.Err(m.Failed(ctx, 2, breaker.Sample{Error: "first"}, breaker.Sample{Error: "no database"})))
		pass(time.Second)
		w.resume()
		pass(3 * time.Second)
		stop()
		<-ended
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "2 failures within 1m") ||
			!strings.Contains(lines[0], `error="no database"`) || !strings.Contains(lines[1], "level=INFO") {
			t.Errorf("logged %s", &log)
		}
	})
}
