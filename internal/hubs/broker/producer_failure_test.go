package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: a batch that is refused, and all that gathered behind it, may be sent again, and
// nothing is stored twice or left out.
func TestProducerAfterARefusal(t *testing.T) {
	for _, refusal := range []error{eventlog.ErrFenced, eventlog.ErrNoSpace, eventlog.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			y, held := newYard(t), make(chan struct{})
			b := y.open(t)
			y.Engine.Inject(func(op logtest.Op) error {
				switch {
				case op.Kind == logtest.OpSubmit && op.N == 2:
					return logtest.Refused(refusal)
				case op.Kind == logtest.OpWait && op.N >= 2:
					<-held
				}
				return nil
			})
			mustCreate(t, b, "orders", 1)
			p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
			mustStore(t, p, 0, "a")
			pending := []*Pending{mustSubmit(t, p, 1, "b"), mustSubmit(t, p, 2, "c"), mustSubmit(t, p, 3, "d")}
			close(held)
			for i, w := range pending {
				want := refusal
				if i > 0 {
					want = eventlog.ErrFenced
				}
				testkit.ErrorIs(t, testkit.Err(w.Wait(t.Context())), want, "%d", i)
			}
			expect(t, b, "orders", "a")
			testkit.ErrorIs(t, testkit.Err(store(t.Context(), p, 2, "c")), ErrOutOfOrder, "the second before the first")
			for first, m := range []string{1: "b", 2: "c", 3: "d"} {
				if m != "" {
					mustStore(t, p, int32(first), m)
				}
			}
			expect(t, b, "orders", "a", "b", "c", "d")
		})
	}
}

// H2: where nobody knows whether a batch was stored, that is cleared up before the next
// one is judged.
func TestProducerAfterDoubt(t *testing.T) {
	for what, stored := range map[string]bool{"it was stored": true, "it was not": false} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			if stored {
				y.Engine.Inject(nth(logtest.OpWait, 2, logtest.Unheard(errors.New("the answer was lost"))))
			} else {
				y.Engine.Inject(nth(logtest.OpSubmit, 2, logtest.Refused(eventlog.ErrUncertain)))
			}
			mustCreate(t, b, "orders", 1)
			p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
			mustStore(t, p, 0, "a")
			if _, err := store(t.Context(), p, 1, "b", "c"); err == nil {
				t.Fatal("no doubt")
			}
			mustPublish(t, b, "orders", Target{}, "plain")
			testkit.ErrorIs(t, testkit.Err(store(t.Context(), p, 1, "other")), ErrOutOfOrder, "other events under the same numbers")
			mustStore(t, p, 1, "b", "c")
			mustStore(t, p, 3, "d")
			if stored {
				expect(t, b, "orders", "a", "b", "c", "plain", "d")
			} else {
				expect(t, b, "orders", "a", "plain", "b", "c", "d")
			}
		})
	}
}

// H2: a new epoch is not told a number that is in doubt.
func TestEpochAfterDoubt(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	y.Engine.Fail(logtest.Unheard(eventlog.ErrUncertain), logtest.OpWait)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	testkit.MustErrorIs(t, testkit.Err(store(t.Context(), p, 0, "a", "b")), eventlog.ErrUncertain)
	testkit.Equal(t, mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID())}).Last(), 1, "last")
}

// H2: doubt lasts until the batch is stored or found: that it was refused the second time
// says nothing of the first.
func TestDoubtOutlastsARefusal(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	y.Engine.Inject(func(op logtest.Op) error {
		refusal := map[int]error{1: eventlog.ErrUncertain, 2: eventlog.ErrNoSpace}[op.N]
		if op.Kind != logtest.OpSubmit || refusal == nil {
			return nil
		}
		return logtest.Refused(refusal)
	})
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	testkit.MustErrorIs(t, testkit.Err(store(t.Context(), p, 0, "a", "b")), eventlog.ErrUncertain)
	if _, err := b.Producer(t.Context(), "orders", "0", ProducerConfig{ID: new(p.ID())}); !errors.Is(err, eventlog.ErrNoSpace) {
		t.Errorf("an epoch began in doubt: %v", err)
	}
	if err := p.ledger.tend(t.Context(), 0); err != nil { // those who do not come back are seen to
		t.Fatal(err)
	}
	expect(t, b, "orders", "a", "b")
	testkit.Equal(t, mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID())}).Last(), 1, "last")
}

// H2: a sender that gives up before its batch is submitted leaves no gap.
func TestProducerGivesUpAtOnce(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the connection is gone")
	cancel(why)
	y.Engine.Inject(nth(logtest.OpSubmit, 1, why)) // as of an engine that has no room, and waits
	testkit.ErrorIs(t, testkit.Err(p.Submit(ctx, 0, events("not stored"))), why)
	mustStore(t, p, 0, "a")
	expect(t, b, "orders", "a")
}

// H2: where the snapshot cannot be written no epoch begins, and what did begin in doubt
// is written by the next who asks for it.
func TestEpochIsDurableOrFails(t *testing.T) {
	for what, lost := range map[string]bool{"the write failed": false, "only its answer was lost": true} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			f := &faults{answerLost: lost}
			b := y.node().fail(f).open(t)
			mustCreate(t, b, "orders", 1)
			old := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero})
			mustStore(t, old, 0, "a")
			f.set(1)
			next := ProducerConfig{ID: new(int64(1)), Epoch: new(int16(1))}
			testkit.MustErrorIs(t, testkit.Err(b.Producer(t.Context(), "orders", "0", next)), errCrashed)
			f.set(0)
			fresh := mustBegin(t, b, "orders", next)
			lower := mustBegin(t, y.open(t), "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(0))})
			testkit.ErrorIs(t, testkit.Err(store(t.Context(), lower, 1, "x")), ErrProducerFenced, "after a restart")
			mustStore(t, fresh, 1, "b")
			expect(t, b, "orders", "a", "b")
		})
	}
}

// H2: epochs that another node has written down fence ours.
func TestEpochsOfOtherNodesFence(t *testing.T) {
	y := newYard(t)
	b, other := y.open(t), y.open(t)
	mustCreate(t, b, "orders", 1)
	testkit.Must(t, other.definitions.Load(t.Context()))
	ours := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero})
	mustBegin(t, other, "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(5))})
	lower := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(3))})
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), lower, 0, "x")), ErrProducerFenced, "a lower epoch than another node's")
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), ours, 0, "x")), ErrProducerFenced, "our old epoch")
}

// H2: an unreadable snapshot is reported, not passed over: it would forget fences.
func TestUnreadableSnapshotIsReported(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	key := producerKey(b.hubs.find("orders").log, 0)
	testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), key, 0, []byte("nonsense"))))
	testkit.ErrorIs(t, testkit.Err(b.Producer(t.Context(), "orders", "0", ProducerConfig{})), errSnapshot)
}

// H2: a hub that is deleted while a snapshot is written leaves none behind.
func TestDeletedHubLeavesNoProducers(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	key := producerKey(b.hubs.find("orders").log, 0)
	y.Meta.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet && op.Key == key }, func(metatest.Op) error {
		return b.DeleteHub(t.Context(), "orders")
	})
	wantNotFound(t, testkit.Err(b.Producer(t.Context(), "orders", "0", ProducerConfig{})), KindHub)
	if entries, err := y.Memory.List(t.Context(), producersPrefix); err != nil || len(entries) != 0 {
		t.Errorf("%d entries are left, %v", len(entries), err)
	}
}

// H2: what is known of producers may be dropped while it is being written, as the hub is deleted.
func TestProducersAreForgottenWhileTheyAreWritten(t *testing.T) {
	next := ProducerConfig{ID: new(int64(1)), Epoch: new(int16(1))}
	for what, write := range map[string]func(*Broker) error{
		"by Run":                func(b *Broker) error { b.ledgers.tend(t.Context(), 0); return nil },
		"for an epoch to begin": func(b *Broker) error { return testkit.Err(b.Producer(t.Context(), "orders", "0", next)) },
	} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			mustCreate(t, b, "orders", 1)
			mustStore(t, mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero}), 0, "a")
			log := b.hubs.find("orders").log
			y.Meta.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet && op.Under(producersPrefix) }, func(metatest.Op) error {
				b.ledgers.forget(log)
				return nil
			})
			testkit.Must(t, write(b))
			testkit.Equal(t, b.ledgers.census.all, 0, "what is counted")
			lower := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(0))})
			testkit.Equal(t, lower.Last(), 0, "the newest number, from what was written")
		})
	}
}
