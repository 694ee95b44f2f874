package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fleet is brokers on nodes of one storage, each with doubles of its own.
type fleet struct {
	yard
	doubles []yard
	brokers []*Broker
}

// newFleet has a hub of one partition, and brokers that know it.
func newFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	y := newYard(t)
	c := &fleet{yard: y}
	mustCreate(t, y.open(t), "orders", 1)
	for range nodes {
		c.join(t)
	}
	return c
}

// join opens one more.
func (c *fleet) join(t *testing.T) *Broker {
	t.Helper()
	y := yard{c.yard.Join(t)}
	c.doubles, c.brokers = append(c.doubles, y), append(c.brokers, y.open(t))
	return c.brokers[len(c.brokers)-1]
}

// passing are errors after which a client sends the same again.
func passing(err error) bool {
	return errors.Is(err, eventlog.ErrFenced) || errors.Is(err, eventlog.ErrUncertain) || errors.Is(err, eventlog.ErrUnavailable) ||
		errors.Is(err, meta.ErrUncertain) || errors.Is(err, meta.ErrConflict)
}

// insist sends a batch until it is stored, as clients do.
func insist(t *testing.T, p *Producer, first int32, messages ...string) Published {
	t.Helper()
	for range 10 {
		stored, err := store(t.Context(), p, first, messages...)
		if err == nil {
			return stored
		}
		if !passing(err) {
			t.Fatal(err)
		}
	}
	t.Fatal("it is refused for ever")
	return Published{}
}

// C2: what a producer sends again by way of another node is stored once, there and back.
func TestRepeatsThroughAnotherNode(t *testing.T) {
	c := newFleet(t, 2)
	var producers []*Producer
	for _, b := range c.brokers {
		producers = append(producers, mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0)), Last: atZero}))
	}
	var want []string
	for n := range int32(12) {
		mustPublish(t, c.brokers[n%2], "orders", Target{}, "plain")
		here, there := producers[n/2%2], producers[1-n/2%2]
		text := fmt.Sprint(n)
		if insist(t, here, n, text).First == eventlog.NoSequence {
			t.Errorf("%d passes for a repeat", n)
		}
		if stored := insist(t, there, n, text); stored.First != eventlog.NoSequence {
			t.Errorf("%d is stored twice: %+v", n, stored)
		}
		want = append(want, "plain", text)
	}
	expect(t, c.brokers[0], "orders", want...)
	again := mustBegin(t, c.brokers[1], "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0))})
	testkit.Equal(t, again.Last(), 11, "the last number there is")
}

// C2: what one node knows of others' producers it knows after a start, too, and so does a new one.
func TestANodeKnowsWhatOthersHaveStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 2)
		stop := []func(){testkit.Run(t, c.brokers[0].Run), testkit.Run(t, c.brokers[1].Run)}
		begin := func(b *Broker, id int64) *Producer {
			return mustBegin(t, b, "orders", ProducerConfig{ID: &id, Epoch: new(int16(0)), Last: atZero})
		}
		a, b := begin(c.brokers[0], 1), begin(c.brokers[1], 2)
		for n := range int32(20) {
			insist(t, a, n, "a")
			insist(t, b, n, "b")
			if n%7 == 0 {
				time.Sleep(2 * saveInterval)
			}
		}
		stop[0]() // it writes the snapshot
		for _, broker := range []*Broker{c.join(t), c.join(t)} {
			for id := range int64(2) {
				p := begin(broker, id+1)
				for n := range int32(20) {
					if stored := insist(t, p, n, strings.Repeat("x", 1)); stored.First != eventlog.NoSequence {
						t.Fatalf("number %d of producer %d is stored twice", n, id+1)
					}
				}
			}
		}
		stop[1]()
		testkit.Equal(t, len(readAll(t, c.brokers[0], "orders")[0]), 40, "events")
	})
}

// C2: a node that is frozen with a batch under way stores nothing once the producer has gone on
// through another.
func TestAFrozenNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 2)
		cfg := ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0)), Last: atZero}
		frozen, awake := mustBegin(t, c.brokers[0], "orders", cfg), c.brokers[1]
		mustStore(t, frozen, 0, "a")
		release := c.doubles[0].hold(2)
		under := mustSubmit(t, frozen, 1, "b")
		behind := mustSubmit(t, frozen, 2, "c")
		other := mustBegin(t, awake, "orders", cfg)
		testkit.Equal(t, other.Last(), -1, "as the client has it")
		mustStore(t, other, 1, "b")
		mustStore(t, other, 2, "c2")
		close(release)
		if err := testkit.Err(under.Wait(t.Context())); err != nil { // it may be stored before the other begins
			testkit.ErrorIs(t, err, eventlog.ErrFenced, "what was under way")
		}
		testkit.ErrorIs(t, testkit.Err(behind.Wait(t.Context())), eventlog.ErrFenced, "what was behind it")
		if stored := insist(t, frozen, 1, "b"); stored.First != eventlog.NoSequence {
			t.Errorf("it is stored twice: %+v", stored)
		}
		insist(t, frozen, 3, "d")
		expect(t, awake, "orders", "a", "b", "c2", "d")
	})
}

// C2: a batch whose outcome one node does not know is not stored again when the producer has gone on
// through another.
func TestDoubtAndAnotherNode(t *testing.T) {
	for what, stored := range map[string]bool{"it was stored": true, "it was not": false} {
		t.Run(what, func(t *testing.T) {
			c := newFleet(t, 2)
			cfg := ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0)), Last: atZero}
			p := mustBegin(t, c.brokers[0], "orders", cfg)
			doubt := error(eventlog.ErrUncertain)
			if stored {
				doubt = logtest.Unheard(doubt)
			}
			c.doubles[0].Engine.Fail(doubt, logtest.OpWait)
			testkit.ErrorIs(t, testkit.Err(store(t.Context(), p, 0, "a")), eventlog.ErrUncertain)
			c.doubles[0].Engine.Inject(nil)
			other := mustBegin(t, c.brokers[1], "orders", cfg)
			insist(t, other, 0, "a")
			insist(t, other, 1, "b")
			c.brokers[0].ledgers.tend(t.Context(), 0)
			insist(t, p, 0, "a")
			insist(t, p, 2, "c")
			expect(t, c.brokers[1], "orders", "a", "b", "c")
		})
	}
}

// C2: an epoch that begins at one node ends the lower ones at all, also where it has stored nothing.
func TestEpochsFenceAtAllNodes(t *testing.T) {
	c := newFleet(t, 3)
	id := int64(7)
	old := mustBegin(t, c.brokers[0], "orders", ProducerConfig{ID: &id, Last: atZero})
	mustStore(t, old, 0, "a")
	fresh := mustBegin(t, c.brokers[1], "orders", ProducerConfig{ID: &id})
	if fresh.Epoch() != 1 || fresh.Last() != 0 {
		t.Errorf("epoch %d, last %d", fresh.Epoch(), fresh.Last())
	}
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), old, 1, "x")), eventlog.ErrFenced, "what the old one sends")
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), old, 1, "x")), ErrProducerFenced, "and sends again")
	third := mustBegin(t, c.brokers[2], "orders", ProducerConfig{ID: &id, Epoch: new(int16(0))})
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), third, 1, "x")), ErrProducerFenced, "an old one that begins elsewhere")
	insist(t, fresh, 1, "b")
	expect(t, c.brokers[0], "orders", "a", "b")
}

// C2: an epoch begins behind what the one before it stores by way of another node at the same time.
func TestAnEpochBeginsBehindTheOneBefore(t *testing.T) {
	c := newFleet(t, 2)
	id := int64(7)
	old := mustBegin(t, c.brokers[0], "orders", ProducerConfig{ID: &id, Last: atZero})
	mustStore(t, old, 0, "a")
	// When the new epoch is about to be written, the old one claims the producer back and goes on.
	claims := 0
	c.doubles[1].Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpClaim {
			claims++
		}
		return nil
	})
	back := false
	c.doubles[1].Meta.Inject(func(op metatest.Op) error {
		if op.Changes() && claims == 1 && !back && strings.HasPrefix(op.Key, producersPrefix) {
			if c.brokers[1].ledgers.of(c.brokers[1].hubs.find("orders"), 0).accounts.byID[id].epoch == 1 {
				back = true
				insist(t, old, 1, "b")
			}
		}
		return nil
	})
	fresh := mustBegin(t, c.brokers[1], "orders", ProducerConfig{ID: &id})
	testkit.MustEqual(t, back, true, "the old epoch went on in between")
	if fresh.Epoch() < 1 || fresh.Last() != 1 {
		t.Errorf("epoch %d begins behind %d", fresh.Epoch(), fresh.Last())
	}
	insist(t, fresh, 2, "c")
	expect(t, c.brokers[0], "orders", "a", "b", "c")
}

// C2: of two nodes that begin the same epoch at once, the one that is later to write it begins another.
func TestAnEpochThatBothBegin(t *testing.T) {
	c := newFleet(t, 2)
	id := int64(7)
	mustStore(t, mustBegin(t, c.brokers[0], "orders", ProducerConfig{ID: &id, Last: atZero}), 0, "a")
	var first *Producer
	c.doubles[1].Meta.Inject(func(op metatest.Op) error {
		if op.Changes() && first == nil && c.brokers[1].ledgers.of(c.brokers[1].hubs.find("orders"), 0).accounts.byID[id].epoch == 1 {
			first = mustBegin(t, c.brokers[0], "orders", ProducerConfig{ID: &id})
		}
		return nil
	})
	second := mustBegin(t, c.brokers[1], "orders", ProducerConfig{ID: &id})
	if first == nil || first.Epoch() != 1 || second.Epoch() != 2 {
		t.Fatalf("%+v and %+v were begun", first, second)
	}
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), first, 1, "x")), eventlog.ErrFenced, "what the first sends")
	testkit.ErrorIs(t, testkit.Err(store(t.Context(), first, 1, "x")), ErrProducerFenced, "and sends again")
	insist(t, second, 1, "b")
	expect(t, c.brokers[0], "orders", "a", "b")
}

// C2: what was read while a flight was in the air, and left alone because of it, is read again when
// that has failed, for whatever reason.
func TestWhatWasLeftAloneIsReadAgain(t *testing.T) {
	for what, err := range map[string]error{"fenced": eventlog.ErrFenced, "refused": eventlog.ErrUnavailable, "in doubt": eventlog.ErrUncertain} {
		as := &accounts{limit: maxProducers, byID: map[int64]*account{}, seen: 10}
		a := as.findOrAddLocked(7)
		a.air = as.newFlightLocked(a, 0)
		as.learn(eventlog.Run{First: 10, Producer: eventlog.Producer{ID: 7, Set: true}, Events: events("theirs")})
		as.saw(11)
		as.crash(a.air, nil, err, !certain(err), lost(err))
		testkit.Equal(t, as.unread(a), 10, "%s: it is read from", what)
		testkit.Equal(t, as.floorLocked(), 10, "%s: a snapshot would be true up to", what)
	}
}

// C2: however many begin at once, and wherever, no two have the same epoch.
func TestEpochsAreEachBegunOnce(t *testing.T) {
	const nodes, each = 3, 10
	c := newFleet(t, nodes)
	var mu sync.Mutex
	var epochs []int16
	var wg sync.WaitGroup
	for _, b := range c.brokers {
		wg.Go(func() {
			for range each {
				p, err := b.Producer(t.Context(), "orders", "0", ProducerConfig{ID: new(int64(7))})
				if err != nil {
					if !passing(err) {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				if p.Epoch() > 0 { // 0 is everybody's who was never here
					epochs = append(epochs, p.Epoch())
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(epochs)
	if got := slices.Compact(slices.Clone(epochs)); len(got) != len(epochs) || len(got) == 0 {
		t.Errorf("epochs %v were begun", epochs)
	}
}

// C2: producers that send by way of any node, and again after every failure, store each number once
// and in order, whatever nodes and storage do.
func TestProducersOfManyNodes(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			c := newFleet(t, 3)
			for i, y := range c.doubles {
				y.Engine.Inject(shaky(rand.New(rand.NewPCG(seed, uint64(10+i)))))
			}
			for i, b := range c.brokers { // sometimes each leaves the snapshot to others
				rnd := rand.New(rand.NewPCG(seed, uint64(20+i)))
				b.ledgers.keeps = func(eventlog.PartitionID) bool { return rnd.IntN(3) == 0 }
				b.ledgers.rest = 0
			}
			const producers, numbers = 4, 20
			var wg sync.WaitGroup
			for id := range int64(producers) {
				rnd := rand.New(rand.NewPCG(seed, uint64(100+id)))
				wg.Go(func() { wander(t, c.brokers, id, numbers, rnd) })
			}
			for range 20 {
				b := c.brokers[rnd.IntN(len(c.brokers))]
				b.ledgers.tend(t.Context(), 0)
				if _, err := b.Publish(t.Context(), "orders", Target{}, events("plain 0")); err != nil && !passing(err) {
					t.Error(err)
				}
			}
			wg.Wait()
			next := make([]int, producers)
			for _, m := range readAll(t, c.join(t), "orders")[0] {
				var id, n int
				if _, err := fmt.Sscanf(m, "%d %d", &id, &n); err != nil {
					continue // plain
				}
				testkit.MustEqual(t, n, next[id], "producer %d: what follows %d", id, next[id]-1)
				next[id]++
			}
			testkit.Slices(t, next, slices.Repeat([]int{numbers}, producers), "numbers stored")
		})
	}
}

// shaky lets operations fail now and then, done or not.
func shaky(rnd *rand.Rand) func(logtest.Op) error {
	var mu sync.Mutex
	return func(op logtest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case rnd.IntN(10) > 0:
			return nil
		case op.Kind == logtest.OpSubmit || op.Kind == logtest.OpBounds || op.Kind == logtest.OpClaim || op.Kind == logtest.OpSealed:
			return eventlog.ErrUnavailable
		case op.Kind == logtest.OpWait && rnd.IntN(2) == 0:
			return logtest.Unheard(eventlog.ErrUncertain)
		case op.Kind == logtest.OpWait:
			return eventlog.ErrUncertain
		}
		return nil
	}
}

// wander sends numbers one by one, as events or as frames, each by way of some node, and again until it is stored; sometimes
// once more.
func wander(t *testing.T, brokers []*Broker, id int64, numbers int, rnd *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held := make([]*Producer, len(brokers))
	for n := range int32(numbers) {
		position := eventlog.NoSequence
		for more := true; more; {
			at := rnd.IntN(len(brokers))
			err := func() (err error) {
				if id%2 == 1 { // by frames
					var stored Published
					stored, err = putFrames(ctx, brokers[at], "orders", frameOf(id, 0, n, fmt.Sprintf("%d %d", id, n)))
					if err == nil && position == eventlog.NoSequence {
						position = stored.First
					}
					if err == nil && stored.First != position {
						t.Errorf("number %d of producer %d is at %d, and at %d", n, id, position, stored.First)
					}
					return err
				}
				if held[at] == nil || rnd.IntN(4) == 0 {
					if held[at], err = brokers[at].Producer(ctx, "orders", "0", ProducerConfig{ID: &id, Epoch: new(int16(0)), Last: atZero}); err != nil {
						return err
					}
				}
				_, err = store(ctx, held[at], n, fmt.Sprintf("%d %d", id, n))
				return err
			}()
			if err != nil && !passing(err) {
				t.Errorf("producer %d, number %d by way of %d: %v", id, n, at, err)
				return
			}
			more = err != nil || rnd.IntN(3) == 0
		}
	}
}
