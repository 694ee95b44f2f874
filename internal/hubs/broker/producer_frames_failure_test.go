package broker

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K3: frames that are refused, and all that gathered behind them, may be sent again, and nothing is
// stored twice or left out.
func TestFramesAfterARefusal(t *testing.T) {
	for _, refusal := range []error{eventlog.ErrFenced, eventlog.ErrNoSpace, eventlog.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			y, held := newYard(t), make(chan struct{})
			b := y.open(t)
			y.Engine.Inject(func(op logtest.Op) error {
				switch {
				case op.Kind == logtest.OpSubmit && op.N == 1:
					return logtest.Refused(refusal)
				case op.Kind == logtest.OpWait && op.N >= 1:
					<-held
				}
				return nil
			})
			mustCreate(t, b, "orders", 1)
			sent := []eventlog.Batch{frameOf(7, 0, 5, "a"), frameOf(7, 0, 6, "b"), frameOf(7, 0, 7, "c")}
			var pending []*PendingFrames
			for _, f := range sent {
				pending = append(pending, testkit.Value(b.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{f}))(t))
			}
			close(held)
			for i, p := range pending {
				want := refusal
				if i > 0 {
					want = eventlog.ErrFenced
				}
				testkit.ErrorIs(t, testkit.Err(p.Wait(t.Context())), want, "%d", i)
			}
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", sent[1])), ErrOutOfOrder, "the second before the first")
			testkit.Equal(t, mustPut(t, b, sent...), 0)
			expect(t, b, "orders", "a", "b", "c")
		})
	}
}

// K3: where of the frames under way only the first are known to be stored, the others are looked for
// before anything else is judged.
func TestFramesAfterDoubt(t *testing.T) {
	for known := range 4 { // how many of those that are submitted together
		t.Run(fmt.Sprint(known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y, held, waits := newYard(t), make(chan struct{}), 0
				b := y.open(t)
				y.Engine.Inject(func(op logtest.Op) error {
					if op.Kind != logtest.OpWait || op.N > 2 {
						return nil
					}
					<-held
					if op.N == 2 { // one after the other
						if waits++; waits > known {
							return logtest.Unheard(eventlog.ErrUncertain)
						}
					}
					return nil
				})
				mustCreate(t, b, "orders", 1)
				sent := []eventlog.Batch{
					frameOf(7, 0, 0, "a"), frameOf(7, 0, 1, "b"), frameOf(7, 0, 2, "c", "d"), frameOf(7, 0, 4, "e"), frameOf(7, 0, 5, "f"),
				}
				positions := []eventlog.Sequence{0, 1, 2, 4, 5}
				var pending []*PendingFrames
				for _, f := range sent {
					pending = append(pending, testkit.Value(b.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{f}))(t))
				}
				close(held)
				for i, p := range pending {
					stored, err := p.Wait(t.Context())
					if i > known {
						testkit.ErrorIs(t, err, eventlog.ErrUncertain, "%d", i)
						continue
					}
					testkit.Must(t, err, "%d", i)
					testkit.Equal(t, stored.First, positions[i])
				}
				testkit.Equal(t, testutil.ToFloat64(b.hubs.find("orders").metrics.events), []float64{1, 2, 4, 5}[known], "events are counted")
				for _, i := range []int{4, 2, 3, 1, 0} {
					testkit.Equal(t, mustPut(t, b, sent[i]), positions[i], "%d again", i)
				}
				mustPut(t, b, frameOf(7, 0, 6, "g"))
				expect(t, b, "orders", "a", "b", "c", "d", "e", "f", "g")
			})
		})
	}
}

// K3: of frames in doubt those are sent again that neither the engine nor the log has.
func TestWhatIsLeftOfFrames(t *testing.T) {
	sizes := []int{1, 2, 1, 3}
	for known := range len(sizes) { // by the engine
		for found := known; found <= len(sizes); found++ { // in the log
			as := &accounts{sole: true, byID: make(map[int64]*account), limit: maxProducers}
			a := as.findOrAddLocked(7)
			a.record = record{last: math.MaxInt32 - 3, none: true}
			f := as.newFlightLocked(a, math.MaxInt32-2)
			a.air = f
			var batches []eventlog.Batch
			var stored []eventlog.Appended
			at, first := eventlog.Sequence(100), f.first
			for _, n := range sizes {
				b := frameOf(7, 0, first, slices.Repeat([]string{"x"}, n)...)
				f.join(&Pending{count: n, bytes: b.Bytes()}, b)
				batches, stored = append(batches, b), append(stored, eventlog.Appended{First: at})
				at, first = at+eventlog.Sequence(2*n), ahead(first, n) // others are between them
			}
			as.crash(f, stored[:known], eventlog.ErrUncertain, true, false)
			for i, b := range batches[:found] { // also what is known
				as.learn(eventlog.Run{First: stored[i].First, Producer: b.Producer, Form: b.Form, Raw: b.Raw, Count: b.Count})
			}
			left := as.resume(a)
			if found == len(sizes) {
				testkit.That(t, left == nil, "%d are known, all are found: %+v is left", known, left)
			} else {
				size := 0
				for _, b := range batches[found:] {
					size += b.Bytes()
				}
				testkit.Equal(t, len(left.batches()), len(sizes)-found, "%d are known, %d found", known, found)
				testkit.Equal(t, left.first, batches[found].Producer.First)
				testkit.Equal(t, left.bytes, size)
				as.land(left, stored[found:])
			}
			testkit.Equal(t, a.last, ahead(first, -1), "%d are known, %d found: the last number", known, found)
			for i, b := range batches {
				testkit.Equal(t, a.storedAt(b.Producer.First, b.Count), stored[i].First, "%d are known, %d found: frame %d", known, found, i)
			}
		}
	}
}

// fullMeter is that of a quota which has no room for a long time.
func fullMeter() *quota.Meter {
	m := quota.NewMeter("policy", "events")
	m.Set(quota.Limit{Events: 1}, time.Now())
	quota.Charge(1_000_000, 0, time.Now(), m)
	return m
}

// K3: a first frame that was refused is waited for: those that were sent behind it cannot pass for it.
func TestTheFirstFrameIsWaitedFor(t *testing.T) {
	first, second := frameOf(7, 0, 40, "a"), frameOf(7, 0, 41, "b")
	for what, refuse := range map[string]func(*testing.T, yard, *Broker){
		"by a quota": func(t *testing.T, _ yard, b *Broker) {
			_, err := b.SubmitFrames(t.Context(), "orders", FrameTarget{Quota: fullMeter()}, []eventlog.Batch{first})
			_, refused := errors.AsType[*quota.Error](err)
			testkit.That(t, refused, "got %v", err)
		},
		"by the store": func(t *testing.T, y yard, b *Broker) {
			y.Meta.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet }, func(metatest.Op) error { return meta.ErrNoSpace })
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", first)), meta.ErrNoSpace)
		},
		"by the log": func(t *testing.T, y yard, b *Broker) {
			y.Engine.Inject(nth(logtest.OpSubmit, 1, eventlog.ErrUnavailable))
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", first)), eventlog.ErrUnavailable)
		},
	} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			mustCreate(t, b, "orders", 1)
			refuse(t, y, b)
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", second)), ErrOutOfOrder, "the second")
			mustPut(t, b, first)
			mustPut(t, b, second)
			mustPut(t, b, frameOf(8, 0, 41, "c")) // others are not affected
			expect(t, b, "orders", "a", "b", "c")
		})
	}
}

// K3, K6: what was refused of producers that never come again is not remembered for ever.
func TestDebtsAreBounded(t *testing.T) {
	as := &accounts{byID: map[int64]*account{}}
	for id := range int64(3 * maxOwed) {
		as.owe(frameOf(id, 0, 0, "x"))
	}
	testkit.That(t, len(as.owed) <= maxOwed, "%d are", len(as.owed))
}
