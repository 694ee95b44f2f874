package delivery

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// clock wakes lanes and endpoints at the times they ask for. There is one timer for all of them and
// one goroutine, Run's: ten thousand lanes that wait for an hour cost as many entries in a heap.
type clock struct {
	// kick notifies the goroutine that the first alarm has changed.
	kick chan struct{}

	mu     sync.Mutex
	alarms alarms // guarded by mu
}

// alarm is one sleeper's; it has at most one at a time. Its fields are guarded by clock.mu.
type alarm struct {
	who      sleeper
	at       time.Time // zero: not set
	position int       // in the heap
}

// sleeper is somebody who is woken. wake is called by the clock's goroutine, without locks.
type sleeper interface{ wake(now time.Time) }

func newClock() *clock { return &clock{kick: make(chan struct{}, 1)} }

// set makes the clock wake the alarm's owner at a time, instead of any time set before; the
// zero time: not at all. It may be called with locks held, under which wake is not called.
func (c *clock) set(a *alarm, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.at.Equal(at) {
		return
	}
	had := !a.at.IsZero()
	a.at = at
	switch {
	case at.IsZero():
		heap.Remove(&c.alarms, a.position)
	case had:
		heap.Fix(&c.alarms, a.position)
	default:
		heap.Push(&c.alarms, a)
	}
	if !at.IsZero() && a.position == 0 {
		nudge(c.kick)
	}
}

func (c *clock) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		who, wait := c.due(now)
		if who != nil {
			who.wake(now)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-timer.C:
		}
	}
}

// due takes one whose time has come, or says when the next one's does.
func (c *clock) due(now time.Time) (sleeper, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.alarms) == 0 {
		return nil, 24 * time.Hour
	}
	first := c.alarms[0]
	if first.at.After(now) {
		return nil, first.at.Sub(now)
	}
	heap.Pop(&c.alarms)
	first.at = time.Time{}
	return first.who, 0
}

type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.position = len(*h)
	*h = append(*h, a)
}

func (h *alarms) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
