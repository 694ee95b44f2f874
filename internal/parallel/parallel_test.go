package parallel_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R3: each is done once, and no more at a time than wanted.
func TestEach(t *testing.T) {
	for _, c := range []struct{ n, atOnce, most int }{{0, 3, 0}, {1, 3, 1}, {2, 3, 2}, {10, 3, 3}} {
		synctest.Test(t, func(t *testing.T) {
			var done [10]atomic.Int32
			var now, most atomic.Int32
			parallel.Each(c.n, c.atOnce, func(i int) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second) // until all that will have begun
				now.Add(-1)
				done[i].Add(1)
			})
			testkit.Equal(t, int(most.Load()), c.most, "%d of %d at a time", c.n, c.atOnce)
			for i := range done {
				testkit.Equal(t, done[i].Load() == 1, i < c.n, "%d of %d is done once", i, c.n)
			}
		})
	}
}
