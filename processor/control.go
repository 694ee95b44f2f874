package processor

import (
	"context"
	"sync"
)

// control is how other goroutines reach the pump's, which waits for its reader or for the handler
// most of the time: the watchdog has the reader opened anew, the ledger and the survey let the
// partition start again, the coordinator changes the epoch shown and answers about the lease.
type control struct {
	mu        sync.Mutex              // guards all
	reopen    context.CancelCauseFunc // ends the reader's session; nil: there was none yet
	startOver context.CancelCauseFunc // ends the generation; nil likewise
	level0    bool                    // readers show epoch 0 to the hub
	check     chan struct{}           // closed when the coordinator has looked at the lease; nil: nobody waits
}

// newGeneration gives the context of the next generation, which ends with read or by endGeneration.
func (c *control) newGeneration(read context.Context) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(read)
	c.startOver = cancel
	return ctx
}

// endGeneration lets the partition start again from its checkpoint. It is called by whoever finds
// out why.
func (c *control) endGeneration(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.startOver != nil {
		c.startOver(why)
	}
}

// newSession gives the context of the next reader, which ends with its generation or by endSession.
func (c *control) newSession(generation context.Context) (context.Context, context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(generation)
	c.reopen = cancel
	return ctx, cancel
}

// endSession has the reader closed; why says what is to follow.
func (c *control) endSession(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reopen != nil {
		c.reopen(why)
	}
}

// showEpoch0 lets readers show no epoch of their own from now on; one that does is opened anew.
func (c *control) showEpoch0() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.level0 && c.reopen != nil {
		c.reopen(errReopen)
	}
	c.level0 = true
}

// level is what readers show to the hub: the lease's epoch, or 0 where owners are about that show
// nothing else.
func (c *control) level(epoch int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.level0 {
		return 0
	}
	return epoch
}

// recheck waits until the coordinator, which wake calls, has looked whether the lease is ours. An
// error means that it is not, or that the partition is given up.
func (c *control) recheck(read context.Context, wake func()) error {
	checked := make(chan struct{})
	c.mu.Lock()
	c.check = checked
	c.mu.Unlock()
	wake()
	select {
	case <-checked:
	case <-read.Done():
	}
	return read.Err()
}

// checking gives what ends recheck, if it waits: to be called after a look at the records that
// began later.
func (c *control) checking() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.check
	if waiting == nil {
		return nil
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.check == waiting {
			close(waiting)
			c.check = nil
		}
	}
}
