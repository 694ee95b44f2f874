package retrylog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Everything at once, for the race detector: nothing is lost and nothing is left.
func TestStorm(t *testing.T) {
	y := newYard(t, Config{
		Ladder: []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond},
		Jitter: func() float64 { return 2*rand.Float64() - 1 },
	})
	const putters, puts, each = 4, 50, 5
	var mu sync.Mutex
	missing := map[string]bool{}
	all := make(chan struct{})
	delivered := func(e Entry) {
		mu.Lock()
		defer mu.Unlock()
		delete(missing, nameOf(e.Delivery))
		if e.Done(); len(missing) == 0 {
			close(all)
		}
	}
	for p := range putters {
		for i := range puts * each {
			missing[fmt.Sprintf("%d-%d", p, i)] = true
		}
	}
	y.taker.hook = func(e Entry) { // half are delivered, the others shelved first
		if e.Due.UnixMilli()%2 == 0 {
			go delivered(e)
			return
		}
		testkit.Check(t, y.Parked(e.Subscription).Put(context.Background(), []pending.Delivery{e.Delivery}))
		e.Done()
	}
	y.run()
	ctx, cancel := context.WithCancel(context.Background())
	var others sync.WaitGroup
	for p := range putters {
		subscription := fmt.Sprint("s", p)
		others.Go(func() {
			for i := range puts {
				var batch []pending.Delivery
				for j := range each {
					batch = append(batch, thingOf(subscription, fmt.Sprintf("%d-%d", p, i*each+j)))
				}
				testkit.Check(t, y.Put(ctx, y.cfg.Ladder[rand.IntN(3)], batch))
			}
		})
		others.Go(func() {
			for ctx.Err() == nil {
				got, err := y.Parked(subscription).TryTake(context.Background(), 7, 2000)
				testkit.Check(t, err)
				for _, e := range got {
					delivered(e)
				}
				y.Waiting(subscription)
				testkit.Check(t, testkit.Err(y.Parked(subscription).Len(context.Background())))
				if len(got) == 0 {
					runtime.Gosched()
				}
			}
		})
		others.Go(func() {
			for i := range 10 {
				doomed := fmt.Sprintf("doomed%d-%d", p, i)
				testkit.Check(t, y.Parked(doomed).Put(ctx, things(1)))
				testkit.Check(t, y.Forget(ctx, doomed))
			}
		})
	}
	select {
	case <-all:
	case <-time.After(20 * time.Second):
		t.Errorf("%d are missing", len(missing))
	}
	cancel()
	others.Wait()
	y.stop()
	for p := range putters {
		subscription := fmt.Sprint("s", p)
		y.wantLen(y.Parked(subscription), 0)
		testkit.Equal(t, len(y.Waiting(subscription)), 0, "left of %s", subscription)
	}
	for _, b := range y.books.all() {
		for name := range b.entry.Load().Value.Cursors {
			if name[0] == 'd' {
				t.Errorf("the cursor of %s is left", name)
			}
		}
	}
}

// Run is started and stopped at any moment; each start goes on where the last has stopped.
func TestStartsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, Config{Ladder: []time.Duration{time.Millisecond}})
		got := map[string]int{}
		y.taker.hook = func(e Entry) { got[nameOf(e.Delivery)]++; e.Done() }
		for i := range 300 {
			y.run()
			if i%3 == 0 {
				y.put(time.Millisecond, thing(fmt.Sprint(i)))
			}
			time.Sleep(rand.N(2 * time.Millisecond))
			y.stop()
		}
		y.run()
		time.Sleep(time.Second)
		y.stop()
		for i := range 300 {
			if n := got[fmt.Sprint(i)]; i%3 == 0 && n != 1 || i%3 != 0 && n != 0 {
				t.Errorf("%d was handed out %d times", i, n)
			}
		}
	})
}

// What waits costs disk and not memory: a hundred thousand entries of 1 KiB, in a retry log that
// would have to be read ahead as a whole, since it is one of short waits.
func TestWaitingCostsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := testkit.Value(disk.Open(disk.Config{Dir: t.TempDir(), Sync: disk.OS, Log: testkit.Quiet()}))(t)
		defer engine.Close()
		cfg := Config{
			Engine: engine, Meta: metatest.NewMemory(), Ladder: []time.Duration{time.Millisecond, time.Second}, Log: testkit.Quiet(),
		}
		before := heapBytes()
		const n = 100_000
		fillRetryLog(t, cfg, n)
		y := testkit.Value(Open(t.Context(), cfg))(t) // anew, so that they are counted, too
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- y.Run(ctx, func(context.Context, []Entry) { t.Error("nothing is due") }) }()
		synctest.Wait()
		testkit.Equal(t, y.counts.total(1), n, "are counted")
		used := heapBytes() - before
		if t.Logf("%d bytes of memory for %d entries", used, n); used > 20<<20 {
			t.Errorf("%d bytes of memory for %d entries that wait", used, n)
		}
		cancel()
		testkit.Must(t, <-ended)
		wantBounded(t, y)
	})
}

// fillRetryLog puts entries that are not due into the second retry log.
func fillRetryLog(t *testing.T, cfg Config, n int) {
	y := testkit.Value(Open(t.Context(), cfg))(t)
	batch, event := make([]pending.Delivery, 500), make([]byte, 1000)
	for i := range n / len(batch) {
		for j := range batch {
			batch[j] = thingOf(fmt.Sprint("s", j%10), "")
			batch[j].Published = batch[j].Published.Add(time.Duration(i) * time.Minute)
			batch[j].Due = time.Now().Add(time.Hour)
			batch[j].Event = event
		}
		testkit.Must(t, y.logs[1].put(t.Context(), batch))
	}
}

func wantBounded(t *testing.T, y *Logs) {
	ahead := &y.logs[1].ahead
	if room := aheadBytes / 2; ahead.bytes < room || ahead.bytes > room+2*putBytes {
		t.Errorf("%d bytes were read ahead, with room for %d", ahead.bytes, room)
	}
	testkit.Equal(t, y.logs[1].mark.Open(), len(ahead.entries), "are under way")
	for key, c := range y.counts.all {
		if len(c.buckets) > maxBuckets {
			t.Errorf("%v has %d buckets", key, len(c.buckets))
		}
	}
}

func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
