package amqp

import "sync/atomic"

// budget is memory that all connections share: what one alone may have, times as many as
// there may be, would be more than there is.
type budget struct {
	limit int64 // fixed but for tests
	used  atomic.Int64
}

// take is false, and takes nothing, where that would be too much.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.giveBack(n)
	return false
}

func (b *budget) giveBack(n int) { b.used.Add(int64(-n)) }
