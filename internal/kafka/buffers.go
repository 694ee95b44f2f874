package kafka

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

// recordsPools lend buffers for the records of partitions, of a few sizes: those of batches as clients
// make them by default, of the largest that they make unless they are told to, and of the largest.
type recordsPools []recordsPool

type recordsPool struct {
	size int
	*bufferPool
}

func newRecordsPools(largest int) recordsPools {
	var all recordsPools
	for _, size := range []int{20 << 10, 128 << 10, 1<<20 + 4<<10} {
		if size < largest {
			all = append(all, recordsPool{size, newBufferPool(size)})
		}
	}
	return append(all, recordsPool{largest, newBufferPool(largest)})
}

// fit is the one that lends buffers of that size, or somewhat larger. The size is at most the largest.
func (all recordsPools) fit(size int) recordsPool {
	for _, p := range all {
		if size <= p.size {
			return p
		}
	}
	return all[len(all)-1]
}

// recordsBuffer is where the records of a Produce request are read to, one partition after another. The
// reading goroutine's alone.
type recordsBuffer struct {
	pools recordsPools
	from  recordsPool
	box   *box // nil: none was borrowed
}

// cost is what it takes to have room for so many bytes.
func (r *recordsBuffer) cost(size int) int {
	if r.fits(size) {
		return r.from.size
	}
	return r.pools.fit(size).size
}

// room gives a buffer of that size. What it gave before is not to be used any more.
func (r *recordsBuffer) room(size int) []byte {
	if !r.fits(size) {
		r.putBack()
		r.from = r.pools.fit(size)
		r.box = r.from.get()
	}
	return r.box.bytes[:size]
}

// held is how much it has borrowed.
func (r *recordsBuffer) held() int {
	if r.box == nil {
		return 0
	}
	return r.from.size
}

func (r *recordsBuffer) fits(size int) bool { return r.box != nil && size <= len(r.box.bytes) }

// putBack returns the buffer to its pool. It may be called again.
func (r *recordsBuffer) putBack() {
	if r.box != nil {
		r.from.put(r.box)
		r.box = nil
	}
}
