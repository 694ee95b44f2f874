package disk

import (
	"runtime"
	"time"
)

// gatherer decides how long a committer lets others join before it commits. Those who were
// settled a moment ago are about to come back with their next append; the first of them
// would otherwise commit alone and the rest wait for a whole sync, in groups that take
// turns. So it gives way to goroutines that can run, as long as the group grows by it, up
// to the size that the last two groups had together. A lone writer, and writers that do
// other things between appends, wait for nobody.
type gatherer struct{ last, previous int }

const (
	// gatherAtMost bounds the wait where the processors are busy with other things: less
	// than the sync that a larger group saves.
	gatherAtMost = 150 * time.Microsecond
	// gatherPatience is how often it gives way without anybody joining.
	gatherPatience = 3
)

// wait returns when it is time to commit. count tells how many have joined.
func (g *gatherer) wait(count func() int) {
	target := g.last + g.previous
	if target <= 2 {
		return
	}
	began := time.Now()
	n := count()
	for idle := 0; n < target && idle < gatherPatience && time.Since(began) < gatherAtMost; {
		runtime.Gosched()
		idle++
		if now := count(); now != n {
			n, idle = now, 0
		}
	}
}

// took notes the size of a group.
func (g *gatherer) took(n int) { g.last, g.previous = n, g.last }
