package functions

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

var (
	chaosSeeds = flag.Int("chaos.seeds", 15, "how many seeds are tried")
	chaosFirst = flag.Int("chaos.first", 0, "the first seed")
)

// F2 to F5, F7: whatever happens, every good event is done, every guilty one is in the poison hub
// exactly once and no other is, and the events of a key are first done in order. A failure prints
// its seed.
func TestChaos(t *testing.T) {
	for seed := *chaosFirst; seed < *chaosFirst+*chaosSeeds && !t.Failed(); seed++ {
		bubble(t, 3, func(w *world) {
			c := newChaos(w, uint64(seed))
			c.play()
			c.check()
			if t.Failed() {
				t.Logf("to repeat: go test ./functions -run TestChaos -chaos.first=%d -chaos.seeds=1; lanes %d, batch %d, each %v, %+v, guilty %v\n%s",
					seed, c.b.Lanes, c.b.MaxBatch, c.each, c.b.Checkpoints, c.guilty, strings.Join(c.trace, "\n"))
			}
		})
	}
}

type chaos struct {
	*world
	random  *rand.Rand
	b       Binding
	each    bool
	guilty  []string // "partition text"; guarded by world.mu
	sent    map[string][]string
	running []*instance
	started int
	kills   int
	trace   []string
}

func newChaos(w *world, seed uint64) *chaos {
	c := &chaos{world: w, random: rand.New(rand.NewPCG(seed, 1)), sent: map[string][]string{}, kills: 3}
	c.b = Binding{Hub: "orders", MaxBatch: 1 + c.random.IntN(6), Timeout: 10 * time.Second,
		Retry: Fixed(c.random.IntN(3), 500*time.Millisecond), Breaker: Breaker{Failures: 5, Within: time.Minute}}
	c.each = c.random.IntN(2) == 0
	if c.random.IntN(2) == 0 {
		c.b.Lanes = 1 + c.random.IntN(4)
	}
	if c.random.IntN(3) == 0 {
		c.b.Checkpoints = processor.Checkpoints{Every: 20 * time.Second}
	}
	if c.random.IntN(3) == 0 {
		c.b.Breaker.Probe = 5 * time.Second
	}
	return c
}

func (c *chaos) note(format string, args ...any) {
	c.trace = append(c.trace, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// send sends some events, of which one in ten is guilty.
func (c *chaos) send() {
	for range c.random.IntN(12) {
		p := fmt.Sprint(c.random.IntN(3))
		text := fmt.Sprintf("key%d:%04d", c.random.IntN(4), len(c.sent[p]))
		if c.sent[p] = append(c.sent[p], text); c.random.IntN(10) == 0 {
			c.mu.Lock()
			c.guilty = append(c.guilty, p+" "+text)
			c.mu.Unlock()
		}
		c.orders.Send(p, text)
	}
}

func (c *chaos) isGuilty(partition, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.guilty, partition+" "+text)
}

func (c *chaos) handle(l *life) Handler {
	one := func(ctx context.Context, partition string, ev event.Event) error {
		if c.isGuilty(partition, string(ev.Body)) {
			return errBad
		}
		return nil
	}
	batch := func(ctx context.Context, b *Batch) error {
		time.Sleep(20 * time.Millisecond)
		for _, ev := range b.Events {
			if err := one(ctx, b.Partition, ev); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	if c.each {
		return c.eachOf(l, func(ctx context.Context, b *Batch) error { return one(ctx, b.Events[0].Partition, b.Events[0]) })
	}
	return batch
}

func (c *chaos) start() {
	c.started++
	l := &life{}
	if c.kills > 0 && c.random.IntN(2) == 0 {
		c.kills--
		l.die, l.after, l.only = 1+c.random.IntN(40), c.random.IntN(2) == 0, ofTheWork
	}
	id := fmt.Sprint("h", c.started)
	c.note("start %s, which dies at step %d", id, l.die)
	c.running = append(c.running, c.startIn(l, id, c.handle(l), c.b))
}

func (c *chaos) stop(i int) {
	in := c.running[i]
	c.running = slices.Delete(c.running, i, i+1)
	in.cancel()
	err := <-in.done
	c.note("%s ended with %v, alive: %v", in.ID(), err, in.life.alive() == nil)
	if err != nil && in.life.alive() == nil && !errors.Is(err, errDown) {
		c.t.Errorf("%s ended with %v", in.ID(), err)
	}
}

// play does this and that for a while.
func (c *chaos) play() {
	for range 40 {
		switch c.random.IntN(8) {
		case 0, 1, 2:
			c.send()
		case 3:
			if len(c.running) < 3 {
				c.start()
			}
		case 4:
			if len(c.running) > 0 {
				c.stop(c.random.IntN(len(c.running)))
			}
		case 5:
			c.trouble()
		case 6:
			c.operate()
		}
		after(c.within(20 * time.Second))
	}
}

// trouble is with the poison hub, or with a host's store.
func (c *chaos) trouble() {
	if c.random.IntN(2) == 0 {
		c.note("the poison hub is away")
		c.poison.SetDown(errors.New("away"))
		after(c.within(time.Minute))
		c.poison.SetDown(nil)
		return
	}
	if len(c.running) > 0 {
		in := c.running[c.random.IntN(len(c.running))]
		c.note("the store is away for %s", in.ID())
		in.life.setDeny(func(string) error { return errDown })
		after(c.within(time.Minute))
		in.life.setDeny(nil)
	}
}

// operate holds or resumes the circuit.
func (c *chaos) operate() {
	if len(c.running) == 0 {
		return
	}
	in := c.running[c.random.IntN(len(c.running))]
	if c.random.IntN(2) == 0 {
		c.note("hold: %v", in.Hold(c.t.Context(), "bill", "chaos"))
	} else {
		c.note("resume: %v", in.Resume(c.t.Context(), "bill"))
	}
}

// check lets all come to rest, and looks.
func (c *chaos) check() {
	for len(c.running) > 0 {
		c.stop(0)
	}
	c.b.Breaker = Breaker{Off: true}
	c.kills = 0
	c.start()
	after(time.Minute)
	testkit.Check(c.t, c.running[0].Resume(c.t.Context(), "bill"))
	after(10 * time.Minute)
	c.stop(0)
	var away []string
	for _, l := range c.poisonEvents() {
		away = append(away, l.Partition+" "+string(l.Event.Body))
	}
	slices.Sort(away)
	testkit.Slices(c.t, away, slices.Sorted(slices.Values(c.guilty)), "put away")
	for p, sent := range c.sent {
		c.wantSaved(p, int64(len(sent))-1)
		c.checkOrder(p, sent)
	}
}

func (c *chaos) checkOrder(partition string, sent []string) {
	seen, last := map[string]bool{}, map[string]string{}
	for _, text := range c.gotDone(partition) {
		key, number, _ := strings.Cut(text, ":")
		if !seen[text] && number < last[key] {
			c.t.Errorf("partition %s: %s came first after %s", partition, text, last[key])
		}
		seen[text] = true
		last[key] = max(last[key], number)
	}
	for _, text := range sent {
		if guilty := c.isGuilty(partition, text); seen[text] == guilty {
			c.t.Errorf("partition %s: %s is guilty: %v, done: %v", partition, text, guilty, seen[text])
		}
	}
}

func (c *chaos) within(d time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(d)))
}
