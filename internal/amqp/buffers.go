package amqp

import "sync"

// bufferPool lends buffers. They come in a box so that giving one back allocates nothing.
type bufferPool struct{ pool sync.Pool }

type box struct{ bytes []byte }

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
