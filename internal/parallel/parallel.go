// Package parallel does many things of one kind, several at a time.
package parallel

import (
	"sync"
	"sync/atomic"
)

// Each calls do for 0 to n-1, at most so many at a time, and returns when all are done.
func Each(n, atOnce int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, atOnce) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}
