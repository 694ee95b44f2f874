package retrylog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// failing makes changes of a store fail: what it has is not done, or was done and nobody was told.
func failing(err error) func(metatest.Op) error {
	return func(op metatest.Op) error {
		if op.Kind == metatest.OpSet {
			return err
		}
		return nil
	}
}

var unheard = failing(metatest.Unheard(meta.ErrUncertain))

// G5: cursors are saved at most once a second, when they have moved, and at the end.
func TestCursorsAreSavedNowAndThen(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.taker.hook = func(e Entry) { e.Done() }
		y.run()
		y.put(time.Second, thing("first")) // makes the cursor
		time.Sleep(10 * time.Second)
		before := y.meta.Count(metatest.OpSet)
		for range 1000 {
			y.put(time.Second, things(3)...)
			time.Sleep(10 * time.Millisecond)
		}
		if n := y.meta.Count(metatest.OpSet) - before; n < 8 || n > 11 {
			t.Errorf("%d writes in 10 s of moving", n)
		}
		time.Sleep(time.Minute)
		before = y.meta.Count(metatest.OpSet)
		time.Sleep(time.Hour)
		testkit.Equal(t, y.meta.Count(metatest.OpSet)-before, 0, "writes in an hour without anything to do")
		y.put(time.Second, thing("a"))
		time.Sleep(time.Second)
		synctest.Wait()
		y.stop()
		y.kill()
		y.run()
		y.wantAfter(time.Hour, "")
	})
}

// A meta store that fails, or does what it was told and does not say so, costs repeats at most.
func TestCursorsInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.meta.Inject(failing(meta.ErrNoSpace))
		testkit.ErrorIs(t, y.Put(t.Context(), time.Second, things(1)), meta.ErrNoSpace, "a first put without a cursor")
		y.meta.Inject(unheard)
		testkit.ErrorIs(t, y.Put(t.Context(), time.Second, things(1)), meta.ErrUncertain, "a first put with a cursor in doubt")
		y.meta.Inject(nil)
		y.put(time.Second, thing("a"))
		y.run()
		time.Sleep(time.Second)
		y.meta.Inject(unheard)
		done(y.wantHanded("a"))
		time.Sleep(time.Minute)
		y.meta.Inject(failing(meta.ErrNoSpace))
		y.put(time.Second, thing("b"))
		done(y.wantAfter(time.Second, "b"))
		time.Sleep(time.Minute)
		y.meta.Inject(nil)
		time.Sleep(time.Minute) // tried again by itself
		y.kill()
		y.run()
		y.wantAfter(time.Minute, "")
	})
}

// C5: storage that is out of reach for an hour refuses puts and holds up what waits; both go on by
// themselves.
func TestStorageOutOfReach(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(10*time.Second, thing("a"))
		y.restart()
		y.faults.Fail(eventlog.ErrUnavailable, logtest.OpProvide, logtest.OpSubmit, logtest.OpBounds, logtest.OpCursor, logtest.OpNext, logtest.OpTrim)
		y.run()
		y.wantAfter(time.Hour, "")
		testkit.ErrorIs(t, y.Put(t.Context(), time.Minute, things(1)), eventlog.ErrUnavailable, "a put into a retry log")
		testkit.ErrorIs(t, y.Parked("s").Put(t.Context(), things(1)), eventlog.ErrUnavailable, "a put on a parked log")
		y.faults.Inject(nil)
		done(y.wantAfter(time.Minute, "a"))
		y.put(time.Minute, thing("b"))
		done(y.wantAfter(time.Minute, "b"))
	})
}

// C4: a node that has not heard of the newest entries yet takes none that is done for lost.
func TestANodeThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.run()
		y.put(time.Second, thing("a"), thing("b"), thing("c"))
		done(y.wantAfter(time.Second, "a b c"))
		y.restart()
		y.faults.Behind(3)
		y.run()
		y.wantAfter(time.Minute, "")
		y.put(time.Second, thing("d"))
		done(y.wantAfter(time.Second, "d"))
	})
}

// A full disk refuses puts and nothing else; they succeed once there is room.
func TestAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.run()
		y.put(10*time.Second, thing("a"))
		y.mem.SetCapacity(1)
		full := things(100)
		testkit.ErrorIs(t, y.Put(t.Context(), time.Minute, full), eventlog.ErrNoSpace, "a put into a retry log without a log")
		testkit.ErrorIs(t, y.Parked("s").Put(t.Context(), full), eventlog.ErrNoSpace, "a put on a parked log")
		done(y.wantAfter(10*time.Second, "a"))
		y.mem.SetCapacity(0)
		y.put(time.Minute, thing("b"))
		y.wantAfter(time.Minute, "b")
		y.mem.SetCapacity(1)
		y.restart() // to a full disk, with b not done
		y.run()
		time.Sleep(time.Second)
		y.mem.SetCapacity(0)
		y.wantAfter(time.Minute, "b")
	})
}

var errBroken = errors.New("the device is gone")

// Storage that cannot be read is tried again, and Run goes on.
func TestReadingIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(time.Second, thing("a"))
		testkit.Must(t, y.Parked("s").Put(t.Context(), things(1)))
		y.restart()
		y.faults.Fail(errBroken, logtest.OpCursor, logtest.OpBounds)
		y.run()
		y.wantAfter(time.Minute, "")
		testkit.ErrorIs(t, testkit.Err(y.Parked("s").TryTake(t.Context(), 1, 1)), errBroken, "the parked log")
		testkit.ErrorIs(t, testkit.Err(y.Parked("s").Len(t.Context())), errBroken, "the parked log counted")
		y.faults.Inject(nil)
		y.wantAfter(maxPause, "a")
		y.wantCount(1)
		y.faults.Fail(errBroken, logtest.OpCursor, logtest.OpBounds) // in the midst of it
		y.put(time.Second, thing("b"))
		y.wantAfter(time.Second, "")
		y.faults.Inject(nil)
		y.wantAfter(2*firstPause, "b")
	})
}

// What was stored though the one who put it was not told is handed out and counted all the same.
func TestAPutInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.faults.Fail(logtest.Unheard(eventlog.ErrUncertain), logtest.OpWait)
		y.run()
		synctest.Wait()
		testkit.ErrorIs(t, y.Put(t.Context(), time.Second, things(2)), eventlog.ErrUncertain, "put")
		synctest.Wait()
		y.wantCount(2)
		done(y.wantAfter(time.Second, "0 1"))
		testkit.Equal(t, len(y.Waiting("mailer2345678")), 0, "waiting")
	})
}

// Disk use follows what waits, not what has ever waited.
func TestDoneEntriesAreTrimmed(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.taker.hook = func(e Entry) { e.Done() }
		y.run()
		parked := y.Parked("s")
		var most int64
		for range 100 {
			batch := things(100)
			for i := range batch {
				batch[i].Event = append(batch[i].Event, make([]byte, 1000)...)
			}
			y.put(time.Second, batch...)
			testkit.Must(t, parked.Put(t.Context(), batch))
			doneAll(testkit.Value(parked.TryTake(t.Context(), 1000, 1<<30))(t))
			time.Sleep(time.Second)
			for _, q := range []*queue{&y.logs[1].queue, &parked.queue} {
				bounds := testkit.Value(q.part.Bounds(t.Context()))(t)
				most = max(most, bounds.Bytes)
			}
		}
		if most < trimFromBytes || most > trimFromBytes+500<<10 {
			t.Errorf("up to %d bytes in a log that never held more than some hundred thousand", most)
		}
	})
}

// What the count at the start has still to see stays, be it done or not.
func TestWhatIsNotCountedIsNotTrimmed(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		batch := things(300)
		for i := range batch {
			batch[i].Event = append(batch[i].Event, make([]byte, 10_000)...)
		}
		y.put(time.Second, batch...)
		y.restart()
		time.Sleep(time.Minute)
		r, all := y.logs[1], 0
		for testkit.Must(t, r.read(t.Context(), time.Now())); len(r.ahead.entries) > 0; testkit.Must(t, r.read(t.Context(), time.Now())) {
			r.ahead.pop().finish()
			all++
		}
		testkit.Must(t, y.Save(t.Context()))
		bounds, err := r.part.Bounds(t.Context())
		if testkit.Must(t, err); all != 300 || bounds.First != 0 {
			t.Errorf("%d were read, the log begins at %d", all, bounds.First)
		}
		testkit.Must(t, r.countOld(t.Context()))
		bounds, err = r.part.Bounds(t.Context())
		if testkit.Must(t, err); y.counts.total(1) != 0 || bounds.First != 300 {
			t.Errorf("%d are counted, the log begins at %d", y.counts.total(1), bounds.First)
		}
	})
}

// A log that begins behind its cursor, for whatever reason, is read from where it begins.
func TestALogThatBeginsBehindItsCursor(t *testing.T) {
	testengine.NeedsTrim(t)
	y := newYard(t, Config{})
	s := y.Parked("s")
	for i := range 100 {
		p := thing(fmt.Sprint(i))
		p.Event = append(p.Event, make([]byte, 10_000)...)
		testkit.Must(t, s.Put(t.Context(), []pending.Delivery{p}))
	}
	testkit.Must(t, s.part.Trim(t.Context(), 50))
	bounds := testkit.Value(s.part.Bounds(t.Context()))(t)
	y.restart()
	y.wantLen(y.Parked("s"), int64(bounds.Next-bounds.First))
	y.wantTaken(y.Parked("s"), 1, 1000, fmt.Sprint(bounds.First))
	if bounds.First == 0 {
		t.Error("nothing was trimmed")
	}
}

// G5: where acknowledged entries may be lost (sync mode os) the log can end before its cursor.
// What is put then has numbers that were done once, and must not be taken for done.
func TestALogThatEndsBeforeItsCursor(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		parked := y.Parked("s")
		testkit.Must(t, parked.Put(t.Context(), things(10)))
		y.put(time.Second, things(10)...)
		y.run()
		time.Sleep(time.Second)
		done(y.wantSome(10))
		doneAll(testkit.Value(parked.TryTake(t.Context(), 10, 1<<20))(t))
		time.Sleep(2 * time.Second)
		y.stop()
		testkit.Must(t, y.engine.Close())
		testkit.Must(t, y.mem.RemoveAll("log")) // power loss, at its worst
		y.open()
		y.put(time.Second, thing("a"))
		testkit.Must(t, y.Parked("s").Put(t.Context(), things(1)))
		y.kill() // before any cursor was saved
		y.put(time.Second, things(20)...)
		testkit.Must(t, y.Parked("s").Put(t.Context(), things(20)))
		y.kill()
		y.run()
		time.Sleep(time.Second)
		y.wantSome(21)
		testkit.Equal(t, len(testkit.Value(y.Parked("s").TryTake(t.Context(), 100, 1<<20))(t)), 21, "on the parked log")
	})
}

// lateEngine stores what it is given only when it is told to: a Put may end before.
type lateEngine struct {
	eventlog.Engine
	late chan struct{}
}

func (e lateEngine) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	p, err := e.Engine.Partition(id)
	return latePartition{p, e.late}, err
}

type latePartition struct {
	eventlog.Partition
	late chan struct{}
}

func (p latePartition) Submit(_ context.Context, b eventlog.Batch) (eventlog.Receipt, error) {
	for i := range b.Events {
		b.Events[i].Message = bytes.Clone(b.Events[i].Message)
	}
	b.Events = slices.Clone(b.Events)
	go func() {
		<-p.late
		_, _ = eventlog.Append(context.Background(), p.Partition, b)
	}()
	return lateReceipt{}, nil
}

type lateReceipt struct{ eventlog.Receipt }

func (lateReceipt) Wait(ctx context.Context) (eventlog.Appended, error) {
	<-ctx.Done()
	return eventlog.Appended{}, ctx.Err()
}

// What is stored only after the one who put it has given up is found, though nothing else is
// put into that retry log: he may have put it elsewhere, but he may also be gone.
func TestAPutThatNobodyWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		late := make(chan struct{})
		y.restart(func(e eventlog.Engine) eventlog.Engine { return lateEngine{e, late} })
		y.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.ErrorIs(t, y.Put(ctx, time.Second, things(2)), context.DeadlineExceeded, "put")
		y.wantAfter(5*time.Second, "")
		close(late)
		done(y.wantAfter(2*time.Minute, "0 1"))
	})
}
