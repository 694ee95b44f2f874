package broker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// expect compares what partition 0 of a hub holds.
func expect(t *testing.T, b *Broker, hub string, want ...string) {
	t.Helper()
	testkit.Must(t, testkit.Err(b.Partition(t.Context(), hub, "0"))) // another node may have stored it a moment ago
	testkit.Slices(t, readAll(t, b, hub)[0], want, "%s holds", hub)
}

// H2: what a producer sends again is stored once, and what is out of order not at all.
func TestProducerStoresOnce(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	if p.Epoch() != 0 || p.Last() != -1 {
		t.Errorf("epoch %d, last %d", p.Epoch(), p.Last())
	}
	mustPublish(t, b, "orders", Target{}, "plain")
	if stored := mustStore(t, p, 0, "a", "b"); stored.First != 1 || stored.Count != 2 || stored.Partition != "0" || stored.Time.IsZero() {
		t.Errorf("got %+v", stored)
	}
	mustStore(t, p, 2, "c")
	for _, again := range [][]string{{"c"}, {"a", "b"}} {
		first := int32(2)
		if len(again) == 2 {
			first = 0
		}
		if stored := mustStore(t, p, first, again...); stored.First != eventlog.NoSequence || stored.Count != len(again) {
			t.Errorf("%q again: %+v", again, stored)
		}
	}
	for _, first := range []int32{-1, 1, 4, 1000} {
		testkit.ErrorIs(t, testkit.Err(store(t.Context(), p, first, "x", "y", "z")), ErrOutOfOrder, "from %d", first)
	}
	mustStore(t, p, 3, "d")
	expect(t, b, "orders", "plain", "a", "b", "c", "d")
	testkit.Equal(t, testutil.ToFloat64(b.metrics.repeats), 3, "repeats are counted")
	testkit.Equal(t, testutil.ToFloat64(b.hubs.find("orders").metrics.events), 5, "events are counted")
}

// H2: what Publish refuses a producer is refused too, and its numbers stay.
func TestProducerRefusals(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	tests := []struct {
		what   string
		events []eventlog.Event
		is     error
	}{
		{"nothing", nil, eventlog.ErrEmptyBatch},
		{"too much", []eventlog.Event{{Message: make([]byte, eventlog.MaxBatchBytes)}}, eventlog.ErrTooLarge},
		{"a key that is too long", keyed(strings.Repeat("k", 129)), ErrKeyTooLong},
		{"a key that is no text", keyed("\xff"), ErrInvalidKey},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(p.Submit(t.Context(), 0, tt.events)), tt.is)
		})
	}
	for what, at := range map[string][2]string{KindHub: {"nowhere", "0"}, KindPartition: {"orders", "1"}} {
		wantNotFound(t, testkit.Err(b.Producer(t.Context(), at[0], at[1], ProducerConfig{})), what, "%s", what)
	}
	mustStore(t, p, 0, "a")
	expect(t, b, "orders", "a")
}

// H2: an epoch ends all lower ones, for good: also for a broker that is opened later, and
// where it has stored nothing.
func TestEpochsFence(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	first := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	mustStore(t, first, 0, "a")
	second := mustBegin(t, b, "orders", ProducerConfig{ID: new(first.ID())})
	if second.ID() != first.ID() || second.Epoch() != 1 || second.Last() != 0 {
		t.Errorf("id %d, epoch %d, last %d", second.ID(), second.Epoch(), second.Last())
	}
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), first, 1, "x")), ErrProducerFenced, "the first epoch")
	third := mustBegin(t, b, "orders", ProducerConfig{ID: new(first.ID()), Epoch: new(int16(9)), Last: new(int32(0))})
	for _, b := range []*Broker{b, y.open(t)} {
		for _, epoch := range []int16{0, 1, 8} {
			lower := mustBegin(t, b, "orders", ProducerConfig{ID: new(first.ID()), Epoch: new(epoch)})
			testkit.ErrorIs(t, testkit.Err(store(t.Context(), lower, 1, "x")), ErrProducerFenced, "epoch %d", epoch)
		}
	}
	mustStore(t, third, 1, "b")
	if again := mustBegin(t, b, "orders", ProducerConfig{ID: new(first.ID()), Epoch: new(int16(9))}); again.Last() != 1 {
		t.Errorf("last is %d", again.Last())
	}
	mustStore(t, third, 2, "c") // the lower ones have fenced nobody
	expect(t, b, "orders", "a", "b", "c")
}

// H2: a new epoch may begin its numbers anew, and is not confused with the one before.
func TestEpochsBeginAnew(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	id := mustBegin(t, b, "orders", ProducerConfig{Last: atZero}).ID()
	for epoch := range int16(3) {
		p := mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: &epoch, Last: atZero})
		mustStore(t, p, 0, "a", "b")
		mustStore(t, p, 2, "c")
		mustStore(t, p, 2, "c")
	}
	b = y.open(t) // reads it from the log
	p := mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: new(int16(2))})
	testkit.Equal(t, p.Last(), 2, "last")
	mustStore(t, p, 2, "c")
	mustStore(t, p, 3, "d")
	expect(t, b, "orders", "a", "b", "c", "a", "b", "c", "a", "b", "c", "d")
}

// H2: producers and partitions do not touch each other, nor does a hub of the same name
// that is made later.
func TestProducersAreApart(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 2)
	p := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(7)), Last: atZero})
	mustStore(t, p, 0, "a")
	mustStore(t, mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(8)), Last: atZero}), 0, "b")
	other, err := b.Producer(t.Context(), "orders", "1", ProducerConfig{ID: new(int64(7))})
	if err != nil || other.Epoch() != 0 || other.Last() != 0 {
		t.Errorf("%+v, %v", other, err)
	}
	if entries, err := y.Memory.List(t.Context(), producersPrefix); err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	wantNotFound(t, testkit.Err(store(t.Context(), p, 1, "x")), KindHub, "after the hub was deleted")
	if entries, err := y.Memory.List(t.Context(), producersPrefix); err != nil || len(entries) != 0 || len(b.ledgers.all) != 0 {
		t.Errorf("%d entries and %d ledgers are left, %v", len(entries), len(b.ledgers.all), err)
	}
	mustCreate(t, b, "orders", 1)
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), p, 1, "x")), eventlog.ErrRemoved, "the old hub's producer in the new hub")
	fresh := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(7))})
	if fresh.Epoch() != 0 || fresh.Last() != 0 {
		t.Errorf("the new hub knows epoch %d, number %d", fresh.Epoch(), fresh.Last())
	}
}

// H2: while a batch is under way those behind it gather and follow, in order; a repeat of
// any of them is answered when that one is durable, and not before.
func TestProducerPipelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
		reused := []byte("c")
		pending := []*Pending{mustSubmit(t, p, 0, "a", "b")}
		for first, m := range []string{2: "c", 3: "d", 4: "e"} {
			if m != "" {
				copy(reused, m)
				next := testkit.Value(p.Submit(t.Context(), int32(first), []eventlog.Event{{Message: reused}}))(t)
				pending = append(pending, next)
			}
		}
		copy(reused, "?")
		gap := make(chan error, 1) // who is not alone waits, and looks what others have stored
		go func() { gap <- testkit.Err(p.Submit(t.Context(), 6, events("g"))) }()
		synctest.Wait()
		pending = append(pending, mustSubmit(t, p, 0, "a", "b"), mustSubmit(t, p, 3, "d"))
		results := make([]Published, len(pending))
		done := make([]bool, len(pending))
		for i, w := range pending {
			go func() {
				results[i], _ = w.Wait(t.Context())
				done[i] = true
			}()
		}
		synctest.Wait()
		if slices.Contains(done, true) {
			t.Fatalf("acknowledged before it was durable: %v", done)
		}
		close(held)
		testkit.ErrorIs(t, <-gap, ErrOutOfOrder, "a gap behind what is under way")
		synctest.Wait()
		for i, first := range []eventlog.Sequence{0, 2, 3, 4, 0, 3} {
			if !done[i] || results[i].First != first {
				t.Errorf("%d: %v, %+v, want %d", i, done[i], results[i], first)
			}
		}
		expect(t, b, "orders", "a", "b", "c", "d", "e")
		testkit.Equal(t, y.Engine.Count(logtest.OpSubmit), 2, "appends")
	})
}

// H2: what gathers is bounded; who would exceed it waits, and may give up.
func TestProducerWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
		big := strings.Repeat("x", eventlog.MaxBatchBytes/2)
		mustSubmit(t, p, 0, big)
		mustSubmit(t, p, 1, big)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		testkit.ErrorIs(t, testkit.Err(p.Submit(ctx, 2, events(big))), context.Canceled)
		close(held)
		if stored := mustStore(t, p, 2, big); stored.First != 2 {
			t.Errorf("got %+v", stored)
		}
	})
}

// H2: who submitted a batch may lose patience, and its repeat still finds it.
func TestProducerLosesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
		ctx, cancel := context.WithCancel(t.Context())
		first := testkit.Value(p.Submit(ctx, 0, events("a")))(t)
		cancel()
		testkit.ErrorIs(t, testkit.Err(first.Wait(ctx)), context.Canceled)
		again := mustBeginWhile(t, b, p, func() { close(held) })
		mustStore(t, again, 0, "a")
		expect(t, b, "orders", "a")
	})
}

// mustBeginWhile lets a producer come back while something of it is under way, and lets
// that end once it waits for it.
func mustBeginWhile(t *testing.T, b *Broker, p *Producer, end func()) *Producer {
	t.Helper()
	var again *Producer
	begun := make(chan error, 1)
	go func() {
		var err error
		again, err = b.Producer(t.Context(), "orders", "0", ProducerConfig{ID: new(p.ID()), Epoch: new(p.Epoch())})
		begun <- err
	}()
	synctest.Wait()
	select {
	case err := <-begun:
		t.Fatalf("it begins before what is under way has ended: %v", err)
	default:
	}
	end()
	testkit.Must(t, <-begun)
	return again
}

// H2: a new epoch waits for what the old one has under way, knows it, and lets nothing
// more of it pass.
func TestEpochWaitsForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b, held := y.open(t), y.hold(1)
		mustCreate(t, b, "orders", 1)
		old := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero})
		mustSubmit(t, old, 0, "a", "b")
		mustSubmit(t, old, 2, "c")
		var fresh *Producer
		var late error
		go func() { fresh, _ = b.Producer(t.Context(), "orders", "0", ProducerConfig{ID: new(int64(1))}) }()
		synctest.Wait()
		go func() { _, late = old.Submit(t.Context(), 3, events("x")) }()
		synctest.Wait()
		if fresh != nil || late != nil {
			t.Fatalf("new epoch %v, late batch %v", fresh, late)
		}
		close(held)
		synctest.Wait()
		if fresh == nil || fresh.Last() != 2 || !errors.Is(late, ErrProducerFenced) {
			t.Fatalf("new epoch %+v, late batch %v", fresh, late)
		}
		expect(t, b, "orders", "a", "b", "c")
	})
}

// H2: producers that were forgotten, to bound what is remembered, may come again; and who
// still has one goes on with it, in the epoch that it is in.
func TestProducersAreForgotten(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	old := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1000)), Last: atZero})
	mustStore(t, old, 0, "a")
	l := &old.ledger.accounts
	l.limit = 20
	for id := range int64(100) { // they store nothing, and are forgotten first
		mustBegin(t, b, "orders", ProducerConfig{ID: &id})
	}
	if n := len(l.byID); n > l.limit {
		t.Errorf("%d are remembered", n)
	}
	mustStore(t, old, 0, "a")
	l.mu.Lock()
	l.byID[1000].used = 0 // long ago
	l.mu.Unlock()
	for id := range int64(100) {
		mustStore(t, mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: new(int16(1))}), 1, "x")
	}
	if n := len(l.byID); n > l.limit || l.byID[1000] != nil {
		t.Errorf("%d are remembered", n)
	}
	if stored := mustStore(t, old, 0, "a"); stored.First != eventlog.NoSequence {
		t.Errorf("a repeat is stored: %+v", stored)
	}
	mustStore(t, old, 1, "b")
	if n := len(l.byID); n > l.limit {
		t.Errorf("%d are remembered", n)
	}
	l.mu.Lock()
	delete(l.byID, 1000)
	l.mu.Unlock()
	again := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1000)), Epoch: new(int16(2)), Last: new(int32(1))})
	mustStore(t, again, 2, "c")
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), old, 2, "x")), ErrProducerFenced, "the old one beside one that began anew")
}

// R1: who learns the id of a producer inside the yard's process publishes nothing in its name: what
// the yard then publishes is no repeat.
func TestTheYardsProducersAreApart(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	for _, id := range []int64{0, 7} {
		yard := mustBegin(t, b, "orders", ProducerConfig{ID: new(id), Epoch: new(int16(0)), Yard: true})
		client := mustBegin(t, b, "orders", ProducerConfig{ID: new(id), Epoch: new(int16(0))})
		mustStore(t, client, 1, "decoy")
		_, err := b.Producer(t.Context(), "orders", "0", ProducerConfig{ID: new(yard.ID())})
		testkit.ErrorIs(t, err, ErrProducerFenced, "a client begins %d", yard.ID())
		stored := mustStore(t, yard, 1, "put away")
		testkit.That(t, stored.First != eventlog.NoSequence, "%d passes for a repeat", id)
	}
}
