package broker

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: who comes back is told the number that it gave, though more is stored than it knows
// of: it numbers anew from the answer, and what it sends again has to meet its old numbers.
func TestAReturningProducerGetsTheNumberItGave(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{})
	testkit.Equal(t, p.Last(), 0, "a new producer is told")
	mustStore(t, p, 1, "a")
	mustStore(t, p, 2, "b", "c") // its answer is lost
	for _, last := range []int32{1, 3, 0, -1, 99} {
		p = mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID()), Epoch: new(p.Epoch()), Last: &last})
		if p.Last() != last {
			t.Errorf("gave %d and is told %d", last, p.Last())
		}
	}
	mustStore(t, p, 2, "b", "c")
	mustStore(t, p, 4, "d")
	if p = mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID()), Epoch: new(p.Epoch())}); p.Last() != 4 {
		t.Errorf("who gives none is told %d", p.Last())
	}
	expect(t, b, "orders", "a", "b", "c", "d")
}

// H2: of five events stored together, one alone is no repeat; nor is it for an epoch that
// comes later, wherever it believes to be.
func TestAnOldNumberIsNoRepeat(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{})
	mustStore(t, p, 1, "1", "2", "3", "4", "5")
	later := mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID()), Last: new(int32(1))})
	same := mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID()), Epoch: new(later.Epoch()), Last: new(int32(1))})
	for _, p := range []*Producer{later, same} {
		testkit.Equal(t, p.Last(), 1, "told")
		_, err := store(t.Context(), p, 2, "six as two")
		if !errors.Is(err, ErrOutOfOrder) || !strings.Contains(err.Error(), "old sequence") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := store(t.Context(), later, 8, "ahead"); !errors.Is(err, ErrOutOfOrder) || strings.Contains(err.Error(), "old sequence") {
		t.Errorf("got %v", err)
	}
	mustStore(t, later, 6, "6")
	expect(t, b, "orders", "1", "2", "3", "4", "5", "6")
}

// H2: several batches that were under way are all recognised, each as it was sent, though
// they were stored together; parts and mixtures of them are not.
func TestRepeatsOfWhatWasUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{})
		sizes := []int{1, 2, 3, 2, 1} // one, then four stored together
		var pending []*Pending
		first := int32(1)
		for _, n := range sizes {
			pending = append(pending, mustSubmit(t, p, first, strings.Split("xyz"[:n], "")...))
			first += int32(n)
		}
		close(held)
		for _, w := range pending {
			testkit.Must(t, testkit.Err(w.Wait(t.Context())))
		}
		first = 1
		for i, n := range sizes {
			if stored := mustStore(t, p, first, strings.Split("xyz"[:n], "")...); stored.First != eventlog.NoSequence {
				t.Errorf("batch %d was stored again: %+v", i, stored)
			}
			first += int32(n)
		}
		for _, wrong := range []struct {
			first int32
			count int
		}{{2, 1}, {3, 1}, {3, 2}, {4, 2}, {2, 3}, {8, 2}} {
			if _, err := store(t.Context(), p, wrong.first, strings.Split("xyz"[:wrong.count], "")...); !errors.Is(err, ErrOutOfOrder) {
				t.Errorf("%d events from %d: %v", wrong.count, wrong.first, err)
			}
		}
		testkit.Equal(t, len(readAll(t, b, "orders")[0]), 9, "events are stored")
	})
}

// H2: a lower epoch comes back to hear of each batch that its time is over, by which epoch;
// and that disturbs nobody.
func TestALowerEpochIsFencedFromTheStart(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	old := mustBegin(t, b, "orders", ProducerConfig{})
	mustStore(t, old, 1, "a")
	fresh := mustBegin(t, b, "orders", ProducerConfig{ID: new(old.ID()), Epoch: new(int16(1)), Last: new(int32(1))})
	back := mustBegin(t, b, "orders", ProducerConfig{ID: new(old.ID()), Epoch: new(int16(0)), Last: new(int32(1))})
	if back.Epoch() != 0 || back.Last() != 1 {
		t.Errorf("told epoch %d, number %d", back.Epoch(), back.Last())
	}
	for _, p := range []*Producer{old, back} {
		_, err := store(t.Context(), p, 2, "x")
		if !errors.Is(err, ErrProducerFenced) || !strings.Contains(err.Error(), "Received:0 Current:1") {
			t.Errorf("got %v", err)
		}
	}
	mustStore(t, fresh, 2, "b")
	expect(t, b, "orders", "a", "b")
}

// H2: ids that the broker chooses are numbers to every client: JavaScript's have 53 bits.
func TestChosenIDsAreSmall(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	for range 200 {
		if id := mustBegin(t, b, "orders", ProducerConfig{}).ID(); id < 0 || id >= 1<<53 {
			t.Fatalf("id %d", id)
		}
	}
}

// H2: an epoch that stored nothing is not bound to the number it began with.
func TestWhoStoredNothingBeginsAnywhere(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	id := int64(5)
	for i, begin := range []struct {
		epoch   int16
		last    *int32
		watched int32
	}{{0, nil, 0}, {1, nil, 0}, {1, new(int32(-1)), -1}, {1, new(int32(41)), 41}} {
		p := mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: &begin.epoch, Last: begin.last})
		testkit.Equal(t, p.Last(), begin.watched, "%d: told", i)
	}
	b = y.open(t) // it is known there that epoch 1 began, and that it stored nothing
	p := mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: new(int16(1)), Last: new(int32(7))})
	mustStore(t, p, 8, "a")
	if _, err := store(t.Context(), mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: new(int16(0))}), 1, "x"); !errors.Is(err, ErrProducerFenced) {
		t.Errorf("epoch 0 after a restart: %v", err)
	}
}

// H2: a producer that nobody used for a week is forgotten, and so is what is written down
// of it. One that still has a link open goes on all the same.
func TestUnusedProducersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", 1)
		stop := testkit.Run(t, b.Run)
		defer stop()
		gone := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(3))}).ID()
		idle := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(2)), Epoch: new(int16(3))})
		busy := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(3)), Epoch: new(int16(3))})
		mustStore(t, idle, 1, "idle")
		for day := range int32(8) {
			mustStore(t, busy, day+1, "busy")
			time.Sleep(24 * time.Hour)
		}
		synctest.Wait()
		if s := y.snapshotOf(t, b, "orders"); len(s.producers) != 1 || s.producers[busy.ID()].last != 8 {
			t.Errorf("written down is %+v", s)
		}
		if p := mustBegin(t, b, "orders", ProducerConfig{ID: &gone}); p.Epoch() != 0 || p.Last() != 0 {
			t.Errorf("epoch %d, number %d is remembered", p.Epoch(), p.Last())
		}
		mustStore(t, idle, 1, "idle") // a repeat
		mustStore(t, idle, 2, "again")
		if _, err := store(t.Context(), mustBegin(t, b, "orders", ProducerConfig{ID: new(idle.ID()), Epoch: new(int16(2))}), 3, "x"); !errors.Is(err, ErrProducerFenced) {
			t.Errorf("a lower epoch: %v", err)
		}
		if got := readAll(t, b, "orders")[0]; strings.Join(got, " ") != "idle"+strings.Repeat(" busy", 8)+" again" {
			t.Errorf("stored are %q", got)
		}
	})
}
