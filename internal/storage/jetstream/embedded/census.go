package embedded

import (
	"net/netip"
	"sync"
)

// census counts the connections that have not shown yet who they are, and says whether one more is let in.
// Addresses of peers have a share each, so that strangers from elsewhere cannot keep them out.
type census struct {
	mu        sync.Mutex
	from      map[netip.Addr]int
	strangers int // from other addresses than the peers'
}

const (
	// maxEach is how many there are from one address at once. A peer makes four connections, and four
	// more each second where it is refused.
	maxEach = 32
	// maxStrangers is how many there are from all addresses but the peers'.
	maxStrangers = 128
)

// admit counts one more, unless there are too many. leave is called once when it has shown who it is, or is
// gone; nil: it is not let in.
func (c *census) admit(from netip.Addr, isPeer bool) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from[from] >= maxEach || !isPeer && c.strangers >= maxStrangers {
		return nil
	}
	if c.from == nil {
		c.from = map[netip.Addr]int{}
	}
	c.from[from]++
	if !isPeer {
		c.strangers++
	}
	return sync.OnceFunc(func() { c.leave(from, isPeer) })
}

func (c *census) leave(from netip.Addr, isPeer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from[from]--; c.from[from] == 0 {
		delete(c.from, from)
	}
	if !isPeer {
		c.strangers--
	}
}

// count is how many are counted.
func (c *census) count() (total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.from {
		total += n
	}
	return total
}
