package delivery

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

type dreamer struct {
	name string
	mu   *sync.Mutex
	log  *[]string
	at   alarm
}

func (d *dreamer) wake(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.log = append(*d.log, fmt.Sprintf("%s %v", d.name, now.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))))
}

func TestTheClockWakesInOrderAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.run(ctx)
		var mu sync.Mutex
		var log []string
		sleepers := map[string]*dreamer{}
		for _, name := range []string{"a", "b", "c", "d"} {
			d := &dreamer{name: name, mu: &mu, log: &log}
			d.at.who = d
			sleepers[name] = d
		}
		now := time.Now()
		c.set(&sleepers["a"].at, now.Add(5*time.Second))
		c.set(&sleepers["b"].at, now.Add(3*time.Second))
		c.set(&sleepers["c"].at, now.Add(4*time.Second))
		c.set(&sleepers["d"].at, now.Add(time.Second))
		c.set(&sleepers["c"].at, time.Time{})          // not any more
		c.set(&sleepers["a"].at, now.Add(time.Second)) // sooner
		c.set(&sleepers["d"].at, now.Add(time.Minute)) // later
		time.Sleep(10 * time.Second)
		synctest.Wait()
		c.set(&sleepers["b"].at, time.Now().Add(-time.Hour)) // at once
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		testkit.Slices(t, log, []string{"a 1s", "b 3s", "b 10s", "d 1m0s"}, "woken")
	})
}
