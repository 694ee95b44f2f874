package delivery

import (
	"context"
	"sync"
)

// shift is how long those may go on who work in a Run: taking ends when Run is to end, sending
// when requests under way have had their time, keeping when what came of them has had its time
// to be stored.
type shift struct{ taking, sending, keeping context.Context }

// crew is the goroutines of a service that come and go with the work: its owner hires them and
// waits for them all. Before hire and after dismiss it starts nobody, so that nothing runs that
// nobody waits for.
type crew struct {
	mu    sync.Mutex
	shift shift          // of the present Run, for those who are started; guarded by mu
	open  bool           // guarded by mu
	all   sync.WaitGroup // added to with mu held
}

func (c *crew) hire(s shift) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift, c.open = s, true
}

// start runs f, and says whether it does: not when Run is to end.
func (c *crew) start(f func(shift)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open || c.shift.taking.Err() != nil {
		return false
	}
	s := c.shift
	c.all.Go(func() { f(s) })
	return true
}

// dismiss lets nobody start any more; what it gives is closed when all have ended.
func (c *crew) dismiss() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	gone := make(chan struct{})
	go func() {
		c.all.Wait()
		close(gone)
	}()
	return gone
}
