package retrylog

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// wallClock is a clock that can be set, unlike that of the bubble, which the engine goes by.
type wallClock struct{ offset atomic.Int64 }

func (c *wallClock) now() time.Time         { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *wallClock) set(step time.Duration) { c.offset.Add(int64(step)) }

func newClockedYard(t *testing.T, cfg Config) (*yard, *wallClock) {
	y, clock := newYard(t, cfg), &wallClock{}
	y.now = clock.now
	return y, clock
}

// G5: a clock that is set back, by whatever, makes nobody wait for more than about twice as
// long as he should, and those who come later not at all.
func TestAClockThatIsSetBack(t *testing.T) {
	for _, by := range []time.Duration{time.Minute, time.Hour, 10 * 365 * 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y, clock := newClockedYard(t, Config{})
				y.run()
				y.put(10*time.Second, thing("in memory"))
				synctest.Wait()
				clock.set(-by)
				y.put(10*time.Second, thing("later")) // wakes it
				y.wantAfter(10*time.Second, "later")
				y.wantAfter(12*time.Second, "in memory")
				for i := range 3 {
					y.put(10*time.Second, thing(fmt.Sprint(i)))
					time.Sleep(time.Second)
				}
				y.wantAfter(9*time.Second, "0 1 2")
			})
		})
	}
}

// Nobody has to put anything for it to be noticed.
func TestAClockThatIsSetBackWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, clock := newClockedYard(t, Config{Ladder: []time.Duration{time.Minute, time.Hour}})
		y.run()
		y.put(time.Hour, thing("a"))
		time.Sleep(time.Minute)
		clock.set(-1000 * time.Hour)
		y.wantAfter(time.Hour+10*time.Minute, "a")
	})
}

// The same where the clock is set back between two lives, with more than fits into memory.
func TestAClockThatWasSetBackBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, clock := newClockedYard(t, Config{})
		for i := range 500 {
			y.put(10*time.Second, thing(fmt.Sprint(i)))
		}
		y.restart()
		y.now = clock.now
		clock.set(-1000 * time.Hour)
		y.logs[2].ahead.room = 20 * (heldBytes + 100)
		y.taker.hook = func(e Entry) { e.Done() }
		y.run()
		y.put(10*time.Second, thing("new"))
		y.wantAfter(9*time.Second, "")
		time.Sleep(4 * time.Second)
		y.wantSome(501)
	})
}

// Those that were put apart come apart, and not all at once.
func TestAClockThatWasSetBackKeepsDistances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, clock := newClockedYard(t, Config{})
		for i := range 5 {
			y.put(time.Minute, thing(fmt.Sprint(i)))
			time.Sleep(3 * time.Second)
		}
		y.restart()
		y.now = clock.now
		clock.set(-1000 * time.Hour)
		y.run()
		got := y.wantAfter(2*time.Minute, "0 1 2 3 4")
		for i, e := range got {
			testkit.Equal(t, e.at.Sub(got[0].at), time.Duration(i)*3*time.Second, "%d came", i)
		}
	})
}

// After a pause of the whole machine, or a clock set forward, what is due is handed out soon.
func TestAClockThatIsSetForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, clock := newClockedYard(t, Config{Ladder: []time.Duration{time.Minute, time.Hour}})
		y.run()
		y.put(time.Hour, thing("a"))
		time.Sleep(time.Second)
		y.put(time.Hour, thing("b"))
		clock.set(59*time.Minute - time.Second)
		y.wantAfter(time.Minute, "a")
		y.wantAfter(time.Second, "b")
	})
}
