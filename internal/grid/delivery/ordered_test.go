package delivery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

func ordered(s *topics.Settings) { s.OrderBy = "subject" }

// keyed makes events of k keys in turn, numbered.
func keyed(k, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%d:%05d", i%k, i)
	}
	return all
}

func keyOfID(id string) string {
	key, _, _ := strings.Cut(id, ":")
	return key
}

// wantOrder checks that the first success of each event comes after those of the events of its
// key that were published before.
func wantOrder(t testing.TB, delivered []string) {
	t.Helper()
	last := make(map[string]string)
	seen := make(map[string]bool)
	for _, id := range delivered {
		if seen[id] {
			continue
		}
		seen[id] = true
		if key := keyOfID(id); id < last[key] {
			t.Errorf("%s was delivered after %s", id, last[key])
		} else {
			last[key] = id
		}
	}
}

func TestOrderedDeliveryKeepsTheOrderOfEachKey(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "receiver", ordered)
		var mu sync.Mutex
		under := make(map[string]int)
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			key := keyOfID(d.ids[0])
			mu.Lock()
			if under[key]++; under[key] > 1 {
				t.Errorf("two events of %s are under way at once", key)
			}
			mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			mu.Lock()
			under[key]--
			mu.Unlock()
			if rand.IntN(4) == 0 {
				return status(500)
			}
			return ok()
		})
		wait()
		y.publish("orders", keyed(5, 200)...)
		after(12 * time.Hour)
		wantIDs(t, "delivered", y.sender.delivered(""), keyed(5, 200))
		wantOrder(t, y.sender.delivered(""))
		if _, most := y.sender.underWay(); most < 2 {
			t.Error("different keys did not go out side by side")
		}
	})
}

func TestOnlyTheKeyOfAFailureIsHeldBack(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", ordered)
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if d.ids[0] == "k1:00001" && d.attempts[0] < 2 {
				return status(500)
			}
			return ok()
		})
		began := time.Now()
		y.publish("orders", keyed(3, 9)...)
		wait()
		wantIDs(t, "at once", y.sender.delivered(""), []string{"k0:00000", "k2:00002", "k0:00003", "k2:00005", "k0:00006", "k2:00008"})
		y.wantStats(id, func(st Stats) bool { return len(st.Waiting) == 0 && st.Queued == 3 })
		after(40 * time.Second)
		wantIDs(t, "in the end", y.sender.delivered(""), keyed(3, 9))
		wantOrder(t, y.sender.delivered(""))
		drops := y.sender.all("")
		testkit.Equal(t, drops[len(drops)-3].at.Sub(began), 40*time.Second, "tried for the third time after")
	})
}

func TestAnOrderedKeyGoesOnBehindADeadLetter(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", ordered, func(s *topics.Settings) { s.Retry.TimeToLive = time.Minute })
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			switch d.ids[0] {
			case "k0:00000":
				return status(400)
			case "k1:00001":
				return status(500)
			}
			return ok()
		})
		y.publish("orders", keyed(2, 6)...)
		wait()
		wantIDs(t, "refused", y.dead.ids(retry.ReasonRefused), []string{"k0:00000"})
		wantIDs(t, "behind it", y.sender.delivered(""), []string{"k0:00002", "k0:00004"})
		after(100 * time.Second) // due again after its time to live
		wantIDs(t, "too old", y.dead.ids(retry.ReasonAge), []string{"k1:00001", "k1:00003", "k1:00005"})
	})
}

// Whatever happens, order holds: probation, pauses, crashes, small queues.
func TestOrderHoldsThroughTrouble(t *testing.T) {
	for seed := range 10 {
		bubble(t, func(t *testing.T, y *yard) {
			y.reconfigure(func(c *Config) { c.QueueEvents, c.Grace = 7, -1 })
			y.topic("orders")
			y.subscribe("orders", "receiver", ordered)
			dice := rand.New(rand.NewPCG(uint64(seed), 2))
			y.sender.says(func(ctx context.Context, d drop) webhook.Result {
				select {
				case <-ctx.Done():
					return outcome(retry.Canceled)
				case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
				}
				if rand.IntN(10) < 6 {
					return status(503)
				}
				return ok()
			})
			all := keyed(4, 200)
			for batch := range slices.Chunk(all, 20) {
				y.publish("orders", batch...)
				after(time.Duration(dice.IntN(60)) * time.Second)
				switch dice.IntN(4) {
				case 0:
					y.restart()
				case 1:
					y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = true })
					after(time.Duration(dice.IntN(60)) * time.Second)
					y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = false })
				}
			}
			y.sender.always(ok())
			after(20 * time.Hour)
			wantIDs(t, "delivered", y.sender.delivered(""), all)
			wantOrder(t, y.sender.delivered(""))
		})
	}
}

func TestTurningOrderOnAndOffLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 2 })
		y.sender.says(func(context.Context, drop) webhook.Result {
			time.Sleep(50 * time.Millisecond)
			if rand.IntN(5) == 0 {
				return status(500)
			}
			return ok()
		})
		all := keyed(3, 200)
		for i, batch := range slices.Collect(slices.Chunk(all, 20)) {
			y.publish("orders", batch...)
			time.Sleep(130 * time.Millisecond)
			y.change("orders", "receiver", func(s *topics.Settings) {
				if s.OrderBy = ""; i%2 == 0 {
					s.OrderBy = "subject"
				}
			})
		}
		after(10 * time.Hour)
		wantIDs(t, "delivered", y.sender.delivered(""), all)
	})
}

// G5, G7: what waits in place goes by its schedule, also when probation ends sooner, and keeps
// nobody else from finding out that the endpoint is well.
func TestWhatWaitsInMemoryKeepsItsScheduleThroughProbation(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "in-order", ordered, func(s *topics.Settings) {
			s.Webhook.URL, s.Retry.Schedule = "https://same.example", []time.Duration{time.Hour}
		})
		y.subscribe("orders", "plain", func(s *topics.Settings) {
			s.Webhook.URL, s.Retry.Schedule, s.Paused = "https://same.example", []time.Duration{time.Second}, true
		})
		y.sender.always(status(503))
		wait()
		began := time.Now()
		y.publish("orders", keyed(20, 20)...)
		after(5 * time.Second)
		y.change("orders", "plain", func(s *topics.Settings) { s.Paused = false })
		y.sender.always(ok())
		after(6 * time.Second)
		wantIDs(t, "plain", y.sender.delivered("plain"), keyed(20, 20))
		failed := make(map[string]bool)
		for _, d := range y.sender.all("in-order") {
			switch at := d.at.Sub(began); {
			case d.result.Status == 503:
				failed[d.ids[0]] = true
			case failed[d.ids[0]]:
				t.Errorf("%v was tried again after %v", d.ids, at)
			}
		}
		if len(failed) == 0 {
			t.Fatal("nothing failed")
		}
		after(time.Hour)
		wantIDs(t, "in-order", y.sender.delivered("in-order"), keyed(20, 20))
	})
}
