package deadletter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The power is cut at any operation of the disk, and entries cannot be changed now and then. Every
// letter that was put is listed and reaches its target, or was purged; what was purged does not
// come back; and what is known to be redriven stays so. // G8
func TestPowerCuts(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { newCuts(t, seed).run() })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// cuts is one life of a yard with many deaths, and what it owes.
type cuts struct {
	*yard
	rnd     *rand.Rand
	sub     *topics.Subscription
	next    int
	put     map[int64]bool // of events, by number: acknowledged
	purged  map[int64]bool
	touched map[int64]bool // a purge that failed may have been done
	marked  map[int64]bool // redriven
}

func newCuts(t *testing.T, seed uint64) *cuts {
	c := &cuts{rnd: rand.New(rand.NewPCG(seed, 7)), put: map[int64]bool{}, purged: map[int64]bool{}, touched: map[int64]bool{}, marked: map[int64]bool{}}
	c.yard = newYard(t)
	c.sub = c.subscribe("billing", "hub:failures", schema.EventGrid)
	return c
}

func (c *cuts) run() {
	for range 6 {
		unsure := rand.New(rand.NewPCG(c.rnd.Uint64(), 9))
		c.meta.Inject(metatest.Shaky(unsure, meta.ErrNoSpace, metatest.Unheard(meta.ErrUncertain)))
		c.mem.FailAfter(5 + c.rnd.IntN(80))
		stop := c.yard.run()
		for range 5 + c.rnd.IntN(12) {
			c.step()
		}
		stop()
		c.cutPower(c.rnd)
		c.meta.Inject(nil)
		c.open()
	}
	stop := c.yard.run()
	time.Sleep(time.Hour)
	synctest.Wait()
	stop()
	c.settle()
}

func (c *cuts) step() {
	ctx := c.t.Context()
	switch c.rnd.IntN(8) {
	case 0:
		n := int64(c.rnd.IntN(c.next + 1))
		_, err := c.Purge(ctx, c.sub.ID, Query{EventID: fmt.Sprintf("e%d", n), Redriven: true})
		if c.touched[n] = true; err == nil && c.put[n] {
			c.purged[n] = true
		}
	case 1:
		n := int64(c.rnd.IntN(c.next + 1))
		var got []int64
		c.deliver = func(ps []pending.Delivery) error {
			for _, p := range ps {
				got = append(got, p.Sequence)
			}
			return nil
		}
		_, err := c.Redrive(ctx, c.sub.ID, Query{EventID: fmt.Sprintf("e%d", n)}, RedriveOptions{})
		for _, n := range got {
			c.marked[n] = c.marked[n] || err == nil
		}
	case 2, 3:
		time.Sleep(time.Duration(c.rnd.IntN(300)) * time.Second)
	default:
		var some []pending.Delivery
		for range 1 + c.rnd.IntN(3) {
			some = append(some, letter(c.sub, c.next))
			c.next++
		}
		if c.Put(ctx, c.sub, some) == nil {
			for _, p := range some {
				c.put[p.Sequence] = true
			}
		}
	}
}

func (c *cuts) settle() {
	page := testkit.Value(c.List(c.t.Context(), c.sub.ID, Query{Limit: 10_000, Redriven: true}))(c.t)
	listed := map[int64]Letter{}
	for _, l := range page.Letters {
		listed[l.Sequence] = l
	}
	sent := strings.Join(c.hubs.sent, "\n")
	for n := range c.put {
		l, found := listed[n]
		switch {
		case c.purged[n] && found:
			c.t.Errorf("event %d was purged and is back", n)
		case !c.touched[n] && !found:
			c.t.Errorf("event %d is not listed", n)
		case found && !strings.Contains(sent, fmt.Sprintf(`"e%d"`, n)):
			c.t.Errorf("event %d never reached its target", n)
		case found && l.Written == "":
			c.t.Errorf("event %d is not known to be written", n)
		case found && c.marked[n] && l.Redriven.IsZero():
			c.t.Errorf("event %d is not known to be redriven", n)
		}
	}
	if len(c.put) == 0 {
		c.t.Error("nothing was put: this proves nothing")
	}
}

// Letters are put, written, purged and redriven at once, while the target and the subscription come
// and go.
func TestAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, func(c *Config) { c.Delay = time.Second })
		stop := y.run()
		var all sync.WaitGroup
		for i := range 4 {
			name := fmt.Sprintf("sub%d", i)
			y.subscribe(name, "hub:failures", schema.EventGrid)
			all.Go(func() { storm(y, name, rand.New(rand.NewPCG(uint64(i), 3))) })
		}
		all.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		entries := testkit.Value(y.meta.List(t.Context(), entryPrefix))(t)
		testkit.Equal(t, len(entries), 0, "entries are left of subscriptions that are gone")
	})
}

func storm(y *yard, name string, rnd *rand.Rand) {
	ctx, sub := y.t.Context(), y.subscribe(name, "hub:failures", schema.EventGrid)
	var all sync.WaitGroup
	for part := range 4 {
		seed := rnd.Uint64()
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 5))
			for i := range 30 {
				switch part {
				case 0:
					testkit.Must(y.t, y.Put(ctx, sub, []pending.Delivery{letter(sub, i)}))
				case 1:
					testkit.Must(y.t, testkit.Err(y.Purge(ctx, sub.ID, Query{Limit: 1})))
				case 2:
					testkit.Must(y.t, testkit.Err(y.Redrive(ctx, sub.ID, Query{}, RedriveOptions{})))
				case 3:
					y.change(sub, []string{"hub:failures", "yard", "hub:others"}[i%3])
				}
				time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			}
		})
	}
	all.Wait()
	y.topics.set(sub.ID, nil)
}
