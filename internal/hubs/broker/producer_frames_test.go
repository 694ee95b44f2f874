package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K3: a frame that is sent again is stored once and answered with its position: of the last five in any
// order, at once, after a restart that reads the log, and after one that reads a snapshot.
func TestRepeatsOfFrames(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	var sent []eventlog.Batch
	var positions []eventlog.Sequence
	for first, n := int32(0), 1; n <= 7; n++ {
		mustPublish(t, b, "orders", Target{}, "plain")
		f := frameOf(7, 0, first, slices.Repeat([]string{fmt.Sprint(n)}, n)...)
		sent, positions = append(sent, f), append(positions, mustPut(t, b, f))
		first += int32(n)
	}
	stored := readAll(t, b, "orders")[0]
	rnd := rand.New(rand.NewPCG(1, 1))
	restart := func() {
		y.Restart(t)
		b = y.open(t)
	}
	for _, prepare := range []struct {
		when string
		do   func()
	}{
		{"at once", func() {}},
		{"after reading the log", restart},
		{"after reading a snapshot", func() {
			b.ledgers.tend(t.Context(), 0)
			restart()
			y.Engine.Fail(errors.New("the log is not to be read"), logtest.OpNext)
		}},
	} {
		prepare.do()
		for _, i := range rnd.Perm(len(sent)) {
			stored, err := putFrames(t.Context(), b, "orders", sent[i])
			if i < len(sent)-maxRecent {
				testkit.ErrorIs(t, err, ErrRepeatTooOld, "%s, frame %d", prepare.when, i)
				continue
			}
			testkit.Must(t, err, "%s, frame %d", prepare.when, i)
			testkit.Equal(t, stored.First, positions[i], "%s, frame %d", prepare.when, i)
			testkit.Equal(t, stored.Count, sent[i].Count, "%s, frame %d", prepare.when, i)
		}
		for what, f := range map[string]eventlog.Batch{
			"a gap":              frameOf(7, 0, 29, "x"),
			"a part of one":      frameOf(7, 0, 21, "x"),
			"the end of one":     frameOf(7, 0, 27, "x"),
			"two":                frameOf(7, 0, 15, slices.Repeat([]string{"x"}, 13)...),
			"one, and more":      frameOf(7, 0, 21, slices.Repeat([]string{"x"}, 8)...),
			"half old, half new": frameOf(7, 0, 27, "x", "y"),
		} {
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", f)), ErrOutOfOrder, "%s, %s", prepare.when, what)
		}
	}
	y.Engine.Inject(nil)
	testkit.Slices(t, readAll(t, b, "orders")[0], stored, "nothing is stored twice")
	testkit.Equal(t, mustPut(t, b, frameOf(7, 0, 28, "next")), eventlog.Sequence(len(stored)))
}

// K3: a producer that is not known may begin with any number. From then on that is the next.
func TestProducersOfFramesBeginAnywhere(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	for id, first := range map[int64]int32{1: 0, 2: 1, 3: 4711, 4: math.MaxInt32} {
		for _, epoch := range []int16{0, 3, math.MaxInt16} {
			id := id<<8 + int64(epoch)
			mustPut(t, b, frameOf(id, epoch, first, "a", "b"))
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", frameOf(id, epoch, ahead(first, 3), "x"))), ErrOutOfOrder)
			mustPut(t, b, frameOf(id, epoch, ahead(first, 2), "c"))
		}
	}
	testkit.Equal(t, len(readAll(t, b, "orders")[0]), 4*3*3, "events")
}

// K3: numbers begin at 0 again behind the largest, also inside a frame.
func TestNumbersOfFramesGoAround(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	sent := []eventlog.Batch{
		frameOf(7, 0, math.MaxInt32-3, "a", "b"), frameOf(7, 0, math.MaxInt32-1, "c", "d", "e"), frameOf(7, 0, 1, "f"),
	}
	for again := range 3 {
		for i, f := range sent {
			testkit.Equal(t, mustPut(t, b, f), []eventlog.Sequence{0, 2, 5}[i])
		}
		if again == 1 {
			y.Restart(t)
			b = y.open(t)
		}
	}
	mustPut(t, b, frameOf(7, 0, 2, "g"))
	expect(t, b, "orders", "a", "b", "c", "d", "e", "f", "g")
}

// K3: an epoch ends the lower ones with its first frame, which has number 0 where the producer is known.
func TestEpochsOfFrames(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	put := func(f eventlog.Batch) error { return testkit.Err(putFrames(t.Context(), b, "orders", f)) }
	testkit.Must(t, put(frameOf(7, 2, 40, "a", "b")))
	testkit.ErrorIs(t, put(frameOf(7, 3, 42, "x")), ErrOutOfOrder, "a new epoch that goes on")
	testkit.Must(t, put(frameOf(7, 2, 42, "c")), "the old one is not over by that")
	testkit.Must(t, put(frameOf(7, 4, 0, "d")))
	for _, when := range []string{"at once", "after a restart"} {
		for _, epoch := range []int16{0, 2, 3} {
			testkit.ErrorIs(t, put(frameOf(7, epoch, 43, "x")), ErrProducerFenced, "%s, epoch %d", when, epoch)
			testkit.ErrorIs(t, put(frameOf(7, epoch, 0, "d")), ErrProducerFenced, "%s, epoch %d", when, epoch)
		}
		testkit.Must(t, put(frameOf(7, 4, 0, "d")), when)
		y.Restart(t)
		b = y.open(t)
	}
	testkit.Must(t, put(frameOf(7, 4, 1, "e")))
	expect(t, b, "orders", "a", "b", "c", "d", "e")
}

// K3: while a frame is under way those behind it gather and follow, in order, each as it came; a repeat of
// any of them is answered when that one is durable, and not before.
func TestFramesPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		sent := []eventlog.Batch{
			frameOf(7, 0, 0, "a", "b"), frameOf(7, 0, 2, "c"), frameOf(7, 0, 3, "d", "e", "f"), frameOf(7, 0, 6, "g"), frameOf(7, 0, 7, "h"),
		}
		firsts := []eventlog.Sequence{0, 2, 3, 6, 7}
		var pending []*PendingFrames
		submit := func(f eventlog.Batch) {
			pending = append(pending, testkit.Value(b.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{f}))(t))
		}
		for _, f := range sent {
			submit(f)
		}
		again := rand.New(rand.NewPCG(2, 2)).Perm(len(sent))
		for _, i := range again {
			submit(sent[i])
			firsts = append(firsts, firsts[i])
		}
		results, done := make([]Published, len(pending)), make([]bool, len(pending))
		for i, p := range pending {
			p.Start()
			go func() {
				results[i], _ = p.Wait(t.Context())
				done[i] = true
			}()
		}
		synctest.Wait()
		testkit.That(t, !slices.Contains(done, true), "acknowledged before it was durable: %v", done)
		close(held)
		synctest.Wait()
		for i, first := range firsts {
			testkit.That(t, done[i] && results[i].First == first && !results[i].Time.IsZero(), "%d: %v, %+v, want %d", i, done[i], results[i], first)
		}
		expect(t, b, "orders", "a", "b", "c", "d", "e", "f", "g", "h")
		testkit.Equal(t, y.Engine.Count(logtest.OpSubmit), 2, "submissions")
		testkit.Equal(t, testutil.ToFloat64(b.metrics.repeats), 8, "repeats")
		testkit.Equal(t, testutil.ToFloat64(b.hubs.find("orders").metrics.events), 8, "events")
	})
}

// K3, K6: what gathers is bounded; who would exceed it waits, and may give up.
func TestFramesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		submit := func(ctx context.Context, first int32) (*PendingFrames, error) {
			f := frameOf(7, 0, first, "x")
			f.Raw, f.Place = make([]byte, eventlog.MaxBatchBytes), nil
			return b.SubmitFrames(ctx, "orders", FrameTarget{}, []eventlog.Batch{f})
		}
		for first := range int32(6) { // one, and five behind it
			testkit.Must(t, testkit.Err(submit(t.Context(), first)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		testkit.ErrorIs(t, testkit.Err(submit(ctx, 6)), context.Canceled)
		close(held)
		last := testkit.Value(submit(t.Context(), 6))(t)
		testkit.Equal(t, testkit.Value(last.Wait(t.Context()))(t).First, 6)
	})
}

// H2, K3: one producer may send single events and frames, each behind the other: there is one ledger.
func TestEventsAndFramesOfOneProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0)), Last: atZero})
		submit := func(first int32, values ...string) *PendingFrames {
			return testkit.Value(b.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{frameOf(7, 0, first, values...)}))(t)
		}
		under := []interface {
			Wait(context.Context) (Published, error)
		}{mustSubmit(t, p, 0, "a"), mustSubmit(t, p, 1, "b", "c")}
		go func() { // they do not travel together
			synctest.Wait()
			close(held)
		}()
		under = append(under, submit(3, "d", "e"), mustSubmit(t, p, 5, "f"), submit(6, "g"))
		for i, first := range []eventlog.Sequence{0, 1, 3, 5, 6} {
			testkit.Equal(t, testkit.Value(under[i].Wait(t.Context()))(t).First, first, "%d", i)
		}
		for range 2 {
			testkit.Equal(t, mustPut(t, b, frameOf(7, 0, 3, "d", "e")), 3)
			mustStore(t, p, 1, "b", "c")
			mustStore(t, p, 5, "f")
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", frameOf(7, 0, 1, "b", "c"))), ErrRepeatTooOld, "of what was stored as events")
			testkit.ErrorIs(t, testkit.Err(store(t.Context(), p, 4, "x")), ErrOutOfOrder)
			b.ledgers.tend(t.Context(), 0)
		}
		next := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(7))})
		testkit.Equal(t, next.Last(), 6, "the next epoch goes on behind")
		testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", frameOf(7, 0, 7, "x"))), ErrProducerFenced)
		mustPut(t, b, frameOf(7, 1, 7, "h"))
		mustStore(t, next, 8, "i")
		expect(t, b, "orders", "a", "b", "c", "d", "e", "f", "g", "h", "i")
	})
}

// K3: producers come and go by the thousand, each with a new id: one that is new costs no write, but for
// the first of a partition.
func TestNewProducersOfFramesWriteNothing(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	if !b.hubs.find("orders").partitions[0].Sole() {
		t.Skip("a claim is written where there may be others")
	}
	mustPut(t, b, frameOf(1, 0, 0, "x"))
	writes := y.Meta.Count(metatest.OpSet)
	for id := range int64(50) {
		mustPut(t, b, frameOf(100+id, 0, 0, "x"))
		mustPut(t, b, frameOf(100+id, 1, 0, "x")) // nor does an epoch: it is in the log
	}
	testkit.Equal(t, y.Meta.Count(metatest.OpSet), writes, "writes")
}

// K3: an epoch of which a snapshot says that it stored nothing begins where its first frame says, and
// still ends the lower ones.
func TestAnEpochThatStoredNothing(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(3))})
	b = y.open(t)
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", frameOf(7, 2, 0, "x"))), ErrProducerFenced)
	_, refused := errors.AsType[*quota.Error](testkit.Err(b.SubmitFrames(t.Context(), "orders", FrameTarget{Quota: fullMeter()}, []eventlog.Batch{frameOf(7, 3, 40, "a")})))
	testkit.That(t, refused, "the quota is not full")
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", frameOf(7, 3, 41, "b"))), ErrOutOfOrder, "behind one that was refused")
	mustPut(t, b, frameOf(7, 3, 40, "a"))
	expect(t, b, "orders", "a")
}

// K3: a snapshot of an older program is read, and what it does not know of is not made up.
func TestSnapshotsOfOlderProgramsAreRead(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustPut(t, b, frameOf(7, 0, 0, "a"))
	mustPut(t, b, frameOf(7, 0, 1, "b"))
	b.ledgers.tend(t.Context(), 0)
	s := y.snapshotOf(t, b, "orders")
	key := producerKey(b.hubs.find("orders").log, 0)
	entry := testkit.Value(y.Memory.Get(t.Context(), key))(t)
	testkit.Equal(t, entry.Value[0], positionsVersion, "the version")
	testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), key, entry.Revision, s.encodeAs(sizesVersion))))
	b = y.open(t)
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", frameOf(7, 0, 1, "b"))), ErrRepeatTooOld)
	testkit.Equal(t, mustPut(t, b, frameOf(7, 0, 2, "c")), 2)
	testkit.Equal(t, mustPut(t, b, frameOf(7, 0, 2, "c")), 2)
	expect(t, b, "orders", "a", "b", "c")
}
