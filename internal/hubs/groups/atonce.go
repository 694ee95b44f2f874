package groups

import (
	"sync"
	"sync/atomic"
)

// maxAtOnce bounds how many changes one call has under way. The store makes one durable
// write of those that arrive while another is under way.
const maxAtOnce = 64

// atOnce calls do for 0 to n-1, several at a time, and returns when all are done.
func atOnce(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, maxAtOnce) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}
