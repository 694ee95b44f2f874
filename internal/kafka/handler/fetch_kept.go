package handler

import "sync/atomic"

// kept bounds what stays in memory between the fetches of all connections: partitions of sessions, and
// readers. Who finds no room goes without: a client without a session names all its partitions each time,
// and a reader that was let go is made anew. Neither loses anything but time.
type kept struct {
	limit int64
	used  atomic.Int64
}

// maxKept is how many there may be, of at most about 1 KiB each.
const maxKept = 128 << 10

func newKept() *kept { return &kept{limit: maxKept} }

// claim is what one connection has of it; one goroutine's. The nil claim has no bounds.
type claim struct {
	of *kept
	n  int64
}

// set makes it so many, if there is room; less is always possible.
func (c *claim) set(n int) bool {
	if c == nil {
		return true
	}
	more := int64(n) - c.n
	if c.of.used.Add(more) > c.of.limit && more > 0 {
		c.of.used.Add(-more)
		return false
	}
	c.n = int64(n)
	return true
}
