package delivery

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fullDisk refuses what is put into logs whose names begin so, and what is too large for retry
// logs.
type fullDisk struct {
	full, tooLarge atomic.Bool
	prefix         string
}

// G8: what cannot be stored is kept and tried again, and nothing is passed before.
func TestAFullDiskLosesNothing(t *testing.T) {
	for _, log := range []string{"grid-tiers", "shelf-"} {
		t.Run(log, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.stop()
				y.disk = &fullDisk{prefix: log}
				y.start()
				y.topic("orders")
				id := y.subscribe("orders", "receiver")
				y.subscribe("orders", "other")
				y.sender.fails("receiver", status(503))
				wait()
				y.disk.full.Store(true)
				y.publish("orders", ids("e", 50)...)
				after(time.Minute)
				wantIDs(t, "another subscription", y.sender.delivered("other"), ids("e", 50))
				y.sender.always(ok())
				after(time.Minute)
				y.disk.full.Store(false)
				after(10 * time.Minute)
				wantIDs(t, "delivered", y.sender.delivered("receiver"), ids("e", 50))
				y.wantStats(id, func(st Stats) bool { return st.Queued+st.InFlight == 0 && len(st.Waiting) == 0 && st.Parked == 0 })
			})
		})
	}
}

// The same, with a crash in between.
func TestACrashWhileTheDiskIsFullLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		y.disk = &fullDisk{prefix: "grid-tiers"}
		y.start()
		y.orders("receiver")
		y.sender.always(status(500))
		y.disk.full.Store(true)
		y.publish("orders", ids("e", 50)...)
		after(5 * time.Second)
		y.restart()
		after(5 * time.Second)
		y.sender.always(ok())
		y.stop()
		y.disk.full.Store(false)
		y.start()
		after(time.Hour)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 50))
	})
}

// C5: and go on by themselves once they can be kept.
func TestDeadLettersThatCannotBeKeptWait(t *testing.T) {
	for what, refusal := range map[string]error{"full": eventlog.ErrNoSpace, "out of reach": eventlog.ErrUnavailable} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				id := y.orders("receiver")
				y.sender.always(status(400))
				y.dead.refuses(refusal)
				y.publish("orders", ids("e", 40)...)
				after(time.Minute)
				y.wantStats(id, func(st Stats) bool { return st.DeadLettered[retry.ReasonRefused] == 0 })
				y.wantRequests("", 16, "one for each worker: the others wait")
				y.dead.refuses(nil)
				after(time.Minute)
				wantIDs(t, "dead", y.dead.ids(""), ids("e", 40))
				testkit.Equal(t, len(y.dead.all()), 40, "letters of 40 events")
			})
		})
	}
}

// C4: a node that has not heard of the newest events yet delivers none of them again, and takes none
// for lost.
func TestANodeThatIsBehindRepeatsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.always(ok())
		y.publish("orders", ids("e", 10)...)
		after(time.Minute)
		y.stop()
		y.Engine.Behind(10)
		y.start()
		after(time.Minute)
		y.publish("orders", "last")
		after(time.Minute)
		y.Engine.Behind(0)
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), append(ids("e", 10), "last"))
		y.wantRequests("", 11, "one for each event")
	})
}

// An event that no retry log can hold is retried in place.
func TestWhatIsTooLargeForARetryLogWaitsInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		y.disk = &fullDisk{prefix: "nowhere"}
		y.disk.tooLarge.Store(true)
		y.start()
		id := y.orders("receiver")
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if d.attempts[0] < 3 {
				return status(500)
			}
			return ok()
		})
		y.publish("orders", "a")
		after(2 * time.Second)
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = true }) // it leaves memory,
		wait()
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = false }) // and is known when it is back
		after(10 * time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"a"})
		y.wantStats(id, func(st Stats) bool { return st.Attempts == 4 && st.Queued == 0 })
	})
}

// Cursors that cannot be saved are saved later.
func TestCursorsAreSavedWhenTheyCanBe(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		var fail atomic.Bool
		y.config = func(c *Config) {
			store := metatest.NewFaulty(c.Meta)
			store.Inject(func(op metatest.Op) error {
				if op.Kind == metatest.OpSet && fail.Load() {
					return errTest
				}
				return nil
			})
			c.Meta = store
		}
		y.start()
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		fail.Store(true)
		wait()
		y.publish("orders", ids("e", 5)...)
		after(10 * time.Second)
		fail.Store(false)
		after(2 * time.Second)
		if _, marks, err := parseCursors([]byte(y.cursors("orders"))); err != nil || marks[id] != 5 {
			t.Errorf("cursors %v, %v", marks, err)
		}
		y.restart()
		after(time.Minute)
		y.wantRequests("", 5, "for 5 events")
	})
}

var errTest = errors.New("the test wants it so")

func (d *fullDisk) check(log string) error {
	switch {
	case d == nil:
	case d.full.Load() && strings.HasPrefix(log, d.prefix):
		return eventlog.ErrNoSpace
	case d.tooLarge.Load() && strings.HasPrefix(log, "grid-tiers"):
		return eventlog.ErrTooLarge
	}
	return nil
}

var seeds = flag.Int("delivery.seeds", defaultSeeds, "how many random lives TestNothingIsLost leads")

// G1, G8: whatever happens to the yard and to endpoints, each event that was published is
// delivered, or becomes a dead letter, for each subscription that it matches.
func TestNothingIsLost(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newLife(t, uint64(seed)).lead() })
		})
	}
}

// life is one random course of events.
type life struct {
	*yard
	dice *rand.Rand
	// want are the ids that each subscription has to get.
	want map[string][]string
	// weather decides what endpoints answer: 0 well, up to 10 very ill.
	weather atomic.Int32
	count   int
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{yard: newYard(t), dice: rand.New(rand.NewPCG(seed, 1)), want: make(map[string][]string)}
	l.config = func(c *Config) {
		c.QueueEvents = 1 + l.dice.IntN(20)
		c.QueueBytes = 2000 + l.dice.IntN(20000)
		c.MemoryBytes = 5000 + l.dice.IntN(100000)
		c.Probation = retry.Probation{After: 3 + l.dice.IntN(10)}
		c.Grace = -1
	}
	l.sender.says(l.answer)
	return l
}

// answer is what an endpoint does. Its dice are apart: which goroutine comes first is chance.
func (l *life) answer(ctx context.Context, d drop) webhook.Result {
	select {
	case <-time.After(time.Duration(rand.IntN(300)) * time.Millisecond):
	case <-ctx.Done():
		return outcome(retry.Canceled)
	}
	if rand.IntN(10) >= int(l.weather.Load()) {
		return ok()
	}
	bad := []int{500, 503, 429, 408, 400, 404, 413, 410}
	if i := rand.IntN(len(bad) + 2); i < len(bad) {
		return status(bad[i])
	}
	return outcome(retry.TimedOut)
}

func (l *life) lead() {
	l.topic("orders")
	l.start()
	l.join("plain")
	l.join("picky", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"b"}} })
	l.join("in-order", func(s *topics.Settings) { s.OrderBy = "subject" })
	l.join("slow", func(s *topics.Settings) { s.Concurrency, s.Rate = 1, 5 })
	l.join("batched", batched(5, 1))
	l.join("sharing", func(s *topics.Settings) { s.Webhook.URL = "https://plain.example" })
	l.join("brief", func(s *topics.Settings) { s.Retry.TimeToLive = time.Minute })
	for range 30 + l.dice.IntN(40) {
		l.step()
	}
	l.weather.Store(0)
	after(30 * time.Hour)
	testkit.Equal(l.t, l.service.budget.used.Load(), 0, "bytes are in use at the end")
	for name, want := range l.want {
		wantIDs(l.t, name, append(l.sender.delivered(name), l.deadOf(name)...), want)
		sub, err := l.topics.Find(topics.Source{Topic: "orders"}, name)
		testkit.Must(l.t, err)
		if st := l.stats(sub.ID); st.Behind+st.Parked != 0 || st.Queued+st.InFlight+len(st.Waiting) != 0 || !st.Oldest.IsZero() {
			l.t.Errorf("%s has something left: %+v", name, st)
		}
	}
	l.stop()
}

func (l *life) join(name string, change ...func(*topics.Settings)) {
	l.subscribe("orders", name, change...)
	l.want[name] = nil
}

func (l *life) deadOf(name string) []string {
	sub, err := l.topics.Find(topics.Source{Topic: "orders"}, name)
	testkit.Must(l.t, err)
	return l.dead.of(sub.ID)
}

func (l *life) step() {
	switch n := l.dice.IntN(20); {
	case n < 8:
		l.publishSome(1 + l.dice.IntN(40))
	case n < 10:
		l.weather.Store(int32(l.dice.IntN(11)))
	case n < 12:
		after(time.Duration(l.dice.IntN(5000)) * time.Millisecond)
	case n < 13:
		after(time.Duration(l.dice.IntN(120)) * time.Minute)
	case n < 14:
		l.restart()
	case n < 16:
		l.blow()
	case n < 17:
		l.stop()
		l.start()
	default:
		l.pauseOne()
	}
	if l.dice.IntN(2) == 0 {
		time.Sleep(time.Duration(l.dice.IntN(1000)) * time.Millisecond)
	}
}

// blow lets the service die between two changes of what is stored.
func (l *life) blow() {
	l.plug.fuse.Store(1 + l.dice.Int64N(60))
	l.publishSome(1 + l.dice.IntN(40))
	after(time.Duration(l.dice.IntN(20_000)) * time.Millisecond)
	l.restart()
}

func (l *life) publishSome(n int) {
	ids := make([]string, n)
	for i := range ids {
		l.count++
		ids[i] = fmt.Sprintf("%c/%d:%d", 'a'+l.dice.IntN(3), l.dice.IntN(4), l.count)
	}
	l.publish("orders", ids...)
	for name := range l.want {
		for _, id := range ids {
			if name != "picky" || id[0] == 'b' {
				l.want[name] = append(l.want[name], id)
			}
		}
	}
}

func (l *life) pauseOne() {
	names := slices.Sorted(maps.Keys(l.want))
	name := names[l.dice.IntN(len(names))]
	l.change("orders", name, func(s *topics.Settings) { s.Paused = true })
	after(time.Duration(l.dice.IntN(90)) * time.Second)
	l.change("orders", name, func(s *topics.Settings) { s.Paused = false })
}
