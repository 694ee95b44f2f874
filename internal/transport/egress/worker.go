package egress

import "time"

// workerIdle is how long a worker waits for another exchange.
const workerIdle = 5 * time.Second

// assign has an exchange run by a worker: one that waits for work, or a new one. Workers are
// kept because a round trip needs a deep stack: to grow one anew for each request costs more
// than all else that is done here. It fails once the client is closed.
func (c *Client) assign(x *exchange) bool {
	select {
	case c.work <- x:
		return true
	default:
		return c.spawn(func() { c.worker(x) })
	}
}

// worker runs exchanges until there have been none for a while.
func (c *Client) worker(x *exchange) {
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for {
		x.runAndNotify()
		x = nil // nothing of it is kept while there is nothing to do
		idle.Reset(workerIdle)
		select {
		case x = <-c.work:
		case <-idle.C:
			return
		case <-c.stopping.Done():
			return
		}
	}
}
