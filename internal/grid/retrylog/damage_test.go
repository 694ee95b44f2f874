package retrylog

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Damage costs what was damaged and holds up nothing.
func TestDamageIsPassed(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		for i := range 12 { // a batch each, of about 100 bytes
			y.put(time.Second, thing(fmt.Sprint(i)))
		}
		testkit.Must(t, y.Parked("s").Put(t.Context(), things(1)))
		y.restart()
		y.damage(y.logs[1].id)
		y.run()
		time.Sleep(time.Second)
		synctest.Wait()
		got := y.taker.handed()
		lost := int(testutil.ToFloat64(y.metrics.damaged))
		if len(got)+lost != 12 || lost < 1 || lost > 2 {
			t.Errorf("%d handed out, %d told as damaged: %s", len(got), lost, names(got))
		}
		done(got)
		time.Sleep(time.Minute)
		y.put(time.Second, thing("z"))
		done(y.wantAfter(time.Second, "z"))
		time.Sleep(time.Minute)
		y.kill()
		y.run()
		y.wantAfter(time.Minute, "")
		testkit.Equal(t, len(y.Waiting("mailer2345678")), 0, "waiting for ever")
	})
}

// The same where damage is the last that there is, and on a parked log.
func TestDamageAtTheEndIsPassed(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		large := things(30) // one batch
		y.put(time.Second, large...)
		testkit.Must(t, y.Parked("s").Put(t.Context(), large))
		y.damage(y.logs[1].id)
		y.damage(y.Parked("s").id)
		y.run()
		y.wantAfter(time.Second, "")
		y.put(time.Second, thing("a"))
		done(y.wantAfter(time.Second, "a"))
		testkit.Equal(t, len(testkit.Value(y.Parked("s").TryTake(t.Context(), 100, 1<<20))(t)), 0, "the damaged parked log")
		testkit.Equal(t, testkit.Value(y.Parked("s").Len(t.Context()))(t), 0, "the damaged parked log")
		testkit.Must(t, y.Parked("s").Put(t.Context(), things(1)))
		if got, err := y.Parked("s").TryTake(t.Context(), 100, 1<<20); err != nil || len(got) != 1 {
			t.Errorf("behind the damage the parked log gave %d, %v", len(got), err)
		}
		testkit.Equal(t, int(testutil.ToFloat64(y.metrics.damaged)), 60, "told as damaged")
	})
}

// What is no pending delivery is passed like damage.
func TestStrangersAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		ladder := []time.Duration{100 * time.Millisecond, time.Second}
		y := newYard(t, Config{Ladder: ladder, Metrics: testkit.Value(NewMetrics(registry, ladder))(t)})
		y.put(time.Second, thing("a"))
		part, err := y.engine.Partition(y.logs[1].id)
		testkit.Must(t, err)
		_, err = eventlog.Append(t.Context(), part, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("what?")}, {}}})
		testkit.Must(t, err)
		y.put(time.Second, thing("b"))
		_, err = eventlog.Append(t.Context(), part, eventlog.Batch{Events: []eventlog.Event{{Message: []byte{1, 1}}}})
		testkit.Must(t, err)
		y.run()
		done(y.wantAfter(time.Second, "a b"))
		time.Sleep(time.Minute)
		if at, _ := y.books.waiting.find(retryLogName(1)); at.Next != 5 {
			t.Errorf("the cursor is at %d, want 5", at.Next)
		}
		testkit.Equal(t, testutil.ToFloat64(y.metrics.damaged), 3, "told as damaged")
		testkit.Equal(t, testkit.Value(testutil.GatherAndCount(registry))(t), 4+len(y.cfg.Ladder), "metrics")
		y.put(time.Second, thing("c"))
		for _, r := range []int{0, 1} {
			testkit.Equal(t, y.counts.total(r), int64(r), "wait in retry log %d", r)
		}
	})
}

// A release that was gone back to does not throw away what the newer one has put: it keeps it,
// holds up nothing for it, and the newer one finds it again.
func TestDeliveriesOfANewerRelease(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		parked := y.Parked("s")
		newer := func(q *queue) {
			_, err := q.open(t.Context())
			testkit.Must(t, err)
			_, err = eventlog.Append(t.Context(), q.part, eventlog.Batch{Events: []eventlog.Event{{Message: []byte{31, 7, 7}}}})
			testkit.Must(t, err)
		}
		y.put(time.Second, thing("a"))
		newer(&y.logs[1].queue)
		y.put(time.Second, thing("b"))
		y.shelve(parked, "c")
		newer(&parked.queue)
		y.shelve(parked, "d")
		y.run()
		done(y.wantAfter(time.Second, "a b"))
		doneAll(y.wantTaken(parked, 10, 1000, "c d"))
		y.wantLen(parked, 1)
		time.Sleep(time.Minute)
		for name, b := range map[string]*book{retryLogName(1): y.books.waiting, "s": y.parkedBook("s")} {
			if at, _ := b.find(name); at.Next != 1 {
				t.Errorf("the cursor of %s is at %d, behind what a newer release has put", name, at.Next)
			}
		}
		testkit.Equal(t, testutil.ToFloat64(y.metrics.damaged), 0, "told as damaged")
		y.restart()
		y.run()
		synctest.Wait()
		done(y.wantHanded("b")) // behind it: a repeat
		y.wantTaken(y.Parked("s"), 10, 1000, "d")
	})
}

// A segment in the middle that is damaged, or gone, costs what was in it and no more.
func TestADamagedSegmentIsPassed(t *testing.T) {
	for name, harm := range map[string]func(*yard, string) error{
		"one byte is wrong": func(y *yard, file string) error { return y.mem.Corrupt(file, 20_000, 0xff) },
		"it is gone":        func(y *yard, file string) error { return y.mem.Remove(file) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, Config{})
				for i := range 300 {
					p := thing(fmt.Sprint(i))
					p.Event = append(p.Event, make([]byte, 1000)...)
					y.put(time.Second, p)
				}
				y.stop()
				testkit.Must(t, y.engine.Close())
				files := testkit.Value(y.mem.List("log/grid-tiers/1"))(t)
				if len(files) < 4 {
					t.Fatalf("%d segments", len(files))
				}
				testkit.Must(t, harm(y, "log/grid-tiers/1/"+files[2].Name))
				y.open()
				y.run()
				time.Sleep(time.Minute)
				synctest.Wait()
				got := y.taker.handed()
				lost := int(testutil.ToFloat64(y.metrics.damaged))
				if len(got)+lost != 300 || lost == 0 || lost > 100 || nameOf(got[len(got)-1].Delivery) != "299" {
					t.Errorf("%d handed out, %d told as damaged", len(got), lost)
				}
				done(got)
				time.Sleep(time.Minute)
				if at, _ := y.books.waiting.find(retryLogName(1)); at.Next != 300 {
					t.Errorf("the cursor is at %d", at.Next)
				}
			})
		})
	}
}
