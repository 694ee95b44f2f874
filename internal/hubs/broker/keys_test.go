package broker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/busiest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// keysOf asks for one partition.
func keysOf(t *testing.T, b *Broker, hub, partition string) KeyTally {
	t.Helper()
	given := testkit.Value(b.Keys(hub, []string{partition}))(t)
	testkit.MustEqual(t, len(given), 1)
	return given[0]
}

// V1: keys are counted from when somebody asks until a while after the last has, and of the last minutes.
func TestKeysAreCountedWhileSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newYard(t).open(t)
		mustCreate(t, b, "orders", 2)
		publish := func(keys ...string) {
			testkit.Must(t, testkit.Err(b.Publish(t.Context(), "orders", Target{Partition: "0"}, keyed(keys...))))
		}
		publish("before")
		began := time.Now()
		got := keysOf(t, b, "orders", "0")
		testkit.That(t, got.Events == 0 && got.Since.Equal(began) && got.Partition == "0", "before anything was counted: %+v", got)

		publish("a", "b", "a", "")
		mustPublish(t, b, "orders", Target{Partition: "1"}, "nobody asks")
		time.Sleep(keysPatience)
		publish("a")
		got = keysOf(t, b, "Orders", "0")
		testkit.Deep(t, got.Tally, busiest.Tally{Events: 5, Keyed: 4, Keys: []busiest.Key{{Key: "a", Count: 3}, {Key: "b", Count: 1}}})
		testkit.Equal(t, keysOf(t, b, "orders", "1").Events, 0, "events of another partition, which nobody asked for")

		time.Sleep(keysPatience + time.Second)
		publish("a")
		testkit.That(t, b.hubs.find("orders").keys[0].Load() == nil, "it is still counted")
		testkit.Equal(t, keysOf(t, b, "orders", "0").Events, 0, "events after counting ended")

		for range 2 * keysWindow / keysPatience {
			publish("steady")
			time.Sleep(keysPatience)
			got = keysOf(t, b, "orders", "0")
		}
		publish("late")
		got = keysOf(t, b, "orders", "0")
		testkit.That(t, time.Since(got.Since) <= 2*keysWindow && got.Events <= int64(2*keysWindow/keysPatience), "of the last minutes: %+v", got)
		testkit.Equal(t, got.Keys[len(got.Keys)-1].Key, "late")

		for range 2 * keysWindow / keysPatience {
			time.Sleep(keysPatience)
			got = keysOf(t, b, "orders", "0")
		}
		testkit.That(t, got.Events == 0 && time.Since(got.Since) <= 2*keysWindow, "after minutes without an event: %+v", got)
	})
}

// V1: producers' events are counted once, as they are stored.
func TestKeysOfProducers(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	testkit.Must(t, testkit.Err(b.Keys("orders", []string{"0"})))
	p := testkit.Value(b.Producer(t.Context(), "orders", "0", ProducerConfig{}))(t)
	for range 2 { // the second is a repeat
		pending := testkit.Value(p.Submit(t.Context(), p.Last()+1, keyed("a", "a")))(t)
		testkit.Must(t, testkit.Err(pending.Wait(t.Context())))
	}
	testkit.Deep(t, keysOf(t, b, "orders", "0").Keys, []busiest.Key{{Key: "a", Count: 2}})
}

func TestKeysOfNothing(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	testkit.That(t, isNotFound(testkit.Err(b.Keys("nowhere", nil)), KindHub), "of no hub")
	testkit.That(t, isNotFound(testkit.Err(b.Keys("orders", []string{"1"})), KindPartition), "of no partition")
}

// R3: publishing allocates nothing for keys, neither while nobody asks nor in the long run.
func TestCountingKeysAllocatesNothing(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	h, batch := b.hubs.find("orders"), keyed("a", "b", "c", "")
	count := func() { b.countKeys(h, 0, batch) }
	testkit.Equal(t, testing.AllocsPerRun(100, count), 0, "allocations while nobody asks")
	testkit.Must(t, testkit.Err(b.Keys("orders", []string{"0"})))
	count()
	testkit.Equal(t, testing.AllocsPerRun(100, count), 0, "allocations while somebody does")
}

// R3: of how many partitions keys are counted at once is bounded, and room comes back.
func TestPartitionsWhoseKeysAreCountedAreBounded(t *testing.T) {
	now := time.Now()
	w := &keyWatch{all: make(map[*keyCount]struct{})}
	hubs, whole := make([]*hub, maxKeysCounted/MaxPartitions+1), make([]int, MaxPartitions)
	for i := range hubs {
		hubs[i] = &hub{Hub: Hub{Name: fmt.Sprint(i)}, keys: make([]atomic.Pointer[keyCount], MaxPartitions)}
	}
	for i := range whole {
		whole[i] = i
	}
	last := len(hubs) - 1
	for _, h := range hubs[:last] {
		testkit.Must(t, testkit.Err(w.watch(h, whole, now)))
	}
	testkit.ErrorIs(t, testkit.Err(w.watch(hubs[last], whole[:1], now)), ErrTooManyKeysCounted)
	testkit.Check(t, testkit.Err(w.watch(hubs[0], whole, now)), "what is counted already")
	later := now.Add(keysPatience + time.Second)
	testkit.Check(t, testkit.Err(w.watch(hubs[last], whole, later)), "when nobody has asked for the others")
	testkit.Equal(t, len(w.all), MaxPartitions)
}

// Many publish while many ask: each event is counted once.
func TestKeysUnderLoad(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	testkit.Must(t, testkit.Err(b.Keys("orders", []string{"0"})))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				testkit.Check(t, testkit.Err(b.Publish(t.Context(), "orders", Target{Key: fmt.Sprint("k", i)}, events("x"))))
				testkit.Check(t, testkit.Err(b.Keys("orders", []string{"0"})))
			}
		})
	}
	all.Wait()
	got := keysOf(t, b, "orders", "0")
	testkit.That(t, got.Events == 200 && len(got.Keys) == 4 && got.Keys[0] == busiest.Key{Key: "k0", Count: 50}, "counted: %+v", got)
}
