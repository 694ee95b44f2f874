package amqp

import "sync"

// bufferPool lends buffers. They come in a box so that giving one back allocates nothing.
type bufferPool struct{ pool sync.Pool }

type box struct{ bytes []byte }

// size is how much is in it; nil has nothing.
func (b *box) size() int {
	if b == nil {
		return 0
	}
	return len(b.bytes)
}

// newBufferPool lends buffers of that size, or of what they have grown to.
func newBufferPool(size int) *bufferPool {
	return &bufferPool{sync.Pool{New: func() any { return &box{make([]byte, size)} }}}
}

func (p *bufferPool) get() *box { return p.pool.Get().(*box) }

func (p *bufferPool) put(b *box) {
	if cap(b.bytes) <= maxPooledBytes {
		b.bytes = b.bytes[:cap(b.bytes)]
		p.pool.Put(b)
	}
}

// What comes in several frames is mostly batches, alike in size: the buffers of two sizes
// are kept for the next. What is small gets what it needs, so that many small beginnings
// hold little; what is larger than all batches is made to measure, too.
const (
	smallPartBytes  = 16 << 10
	mediumPartBytes = 256 << 10
	largePartBytes  = 1 << 20
)

// partPool lends buffers for unfinished messages.
type partPool struct{ medium, large sync.Pool }

// partRoom is how much is lent to who needs so much.
func partRoom(need int) int {
	switch {
	case need > smallPartBytes && need <= mediumPartBytes:
		return mediumPartBytes
	case need > mediumPartBytes && need <= largePartBytes:
		return largePartBytes
	default:
		return need
	}
}

// get gives an empty buffer with that room, as partRoom chose it.
func (p *partPool) get(room int) []byte {
	switch room {
	case mediumPartBytes:
		if kept, ok := p.medium.Get().(*[mediumPartBytes]byte); ok {
			return kept[:0]
		}
	case largePartBytes:
		if kept, ok := p.large.Get().(*[largePartBytes]byte); ok {
			return kept[:0]
		}
	}
	return make([]byte, 0, room)
}

// put takes a buffer back that get gave.
func (p *partPool) put(buf []byte) {
	switch cap(buf) {
	case mediumPartBytes:
		p.medium.Put((*[mediumPartBytes]byte)(buf[:mediumPartBytes]))
	case largePartBytes:
		p.large.Put((*[largePartBytes]byte)(buf[:largePartBytes]))
	}
}
