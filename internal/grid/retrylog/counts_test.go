package retrylog

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/testkit"
)

func (y *yard) wantWaiting(subscription string, want ...Waiting) {
	y.t.Helper()
	synctest.Wait()
	testkit.Equal(y.t, cmp.Diff(want, y.Waiting(subscription)), "", "waiting of %s (-want +got):\n", subscription)
}

// G5: how much waits, and since when, also after a start.
func TestWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		time.Sleep(90 * time.Second)
		start := time.Now().UTC() // the minute is half over: the oldest is not as old as its minute
		y.put(time.Second, thingOf("a", "1"), thingOf("b", "2"), thingOf("a", "3"))
		time.Sleep(time.Minute)
		y.put(time.Minute, thingOf("a", "4"))
		second := Waiting{Log: time.Second, Count: 2, Oldest: start}
		minute := Waiting{Log: time.Minute, Count: 1, Oldest: start.Add(time.Minute)}
		y.wantWaiting("a", second, minute)
		y.wantWaiting("b", Waiting{Log: time.Second, Count: 1, Oldest: start})
		y.wantWaiting("c")

		y.restart()
		y.run()
		y.wantWaiting("a", second, minute)
		got := y.wantHanded("1 2 3")
		y.wantWaiting("a", second, minute) // handed out is not done
		got[0].Done()
		got[0].Done()
		second.Count--
		y.wantWaiting("a", second, minute)
		got[1].Done()
		got[2].Done()
		y.wantWaiting("a", minute)
		y.wantWaiting("b")

		y.restart()
		y.wantWaiting("a")
		y.run()
		y.wantWaiting("a", minute)
	})
}

// The count at the start is right whatever is done, put and trimmed while it goes on.
func TestCountingWhileTheyGo(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			y := newYard(t, Config{})
			for i := range 200 {
				p := thing(fmt.Sprint(i))
				p.Event = append(p.Event, make([]byte, random.IntN(8000))...)
				y.put(time.Second, p)
			}
			y.restart()
			kept := 0
			finish := make(chan Entry, 1000)
			y.taker.hook = func(e Entry) { // some are done at once, some later, some never
				switch random.IntN(3) {
				case 0:
					e.Done()
				case 1:
					finish <- e
				default:
					kept++
				}
			}
			time.Sleep(time.Second)
			y.run()
			for range 30 {
				y.put(time.Second, thing("new"))
			}
			go func() {
				for e := range finish {
					e.Done()
				}
			}()
			time.Sleep(time.Second)
			synctest.Wait()
			y.stop()
			close(finish)
			synctest.Wait()
			got := y.Waiting("mailer2345678")
			if len(got) != 1 || got[0].Count != int64(kept) {
				t.Errorf("seed %d: waiting %v, want %d", seed, got, kept)
			}
		})
	}
}

// Counts agree with plain ones; the oldest is never too young, and of few minutes exact.
func TestCountsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCounts()
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		days := rapid.IntRange(1, 3).Draw(t, "days")
		var waiting []time.Time
		fewest := true
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if len(waiting) > 0 && rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
				c.add(&pending.Delivery{Subscription: "a", Published: waiting[i]}, 0, -1)
				waiting = append(waiting[:i], waiting[i+1:]...)
			} else {
				at := base.Add(time.Duration(rapid.IntRange(0, days*1440).Draw(t, "minute"))*time.Minute + 38*time.Second)
				c.add(&pending.Delivery{Subscription: "a", Published: at}, 0, 1)
				waiting = append(waiting, at)
			}
			minutes := map[time.Time]bool{}
			oldest := base.Add(1000 * time.Hour)
			for _, at := range waiting {
				minutes[at] = true
				if at.Before(oldest) {
					oldest = at
				}
			}
			fewest = fewest && len(minutes) <= maxBuckets
			n, at := c.of("a", 0)
			testkit.MustSlices(t, []any{n, c.total(0)}, []any{int64(len(waiting)), n}, "counted")
			if n > 0 && (at.After(oldest) || fewest && at != oldest || oldest.Sub(at) > 3*time.Hour) {
				t.Fatalf("oldest %v, want %v", at, oldest)
			}
			if len(c.all) > 0 && len(c.all[countKey{"a", 0}].buckets) > maxBuckets {
				t.Fatal("too many buckets")
			}
		}
		if len(waiting) == 0 && len(c.all) != 0 {
			t.Fatal("nothing waits and something is kept")
		}
	})
}
