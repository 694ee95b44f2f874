package amqp

import (
	"fmt"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

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

// reassembly is the memory of a connection's unfinished messages. The reading goroutine's alone.
type reassembly struct {
	held int // bytes
	all  *budget
	// permit is where a stranger's are counted as well.
	permit *admission.Permit
	pool   *partPool
}

// grow gives a buffer with what buf holds and with room for size bytes: twice as much as it had,
// within the limits of the message, the connection and all connections.
func (r *reassembly) grow(buf []byte, size int, maxMessage uint64) ([]byte, error) {
	was := cap(buf)
	if size <= was {
		return buf, nil
	}
	room := partRoom(max(size, int(min(2*uint64(was), maxMessage))))
	if limit := max(uint64(maxPartBytes), maxMessage); uint64(r.held+room-was) > limit {
		return buf, fmt.Errorf("%w: %d bytes are allowed", errPartsFull, limit)
	}
	if !r.permit.Claim(room - was) {
		return buf, errAllPartsFull
	}
	if !r.all.take(room - was) {
		r.permit.Free(room - was)
		return buf, errAllPartsFull
	}
	r.held += room - was
	grown := append(r.pool.get(room), buf...)
	r.pool.put(buf)
	return grown, nil
}

// free gives back the memory of a message.
func (r *reassembly) free(buf []byte) {
	r.held -= cap(buf)
	r.all.giveBack(cap(buf))
	r.permit.Free(cap(buf))
	r.pool.put(buf)
}
