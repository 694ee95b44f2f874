package disk

import "github.com/eventyard/eventyard/internal/sleep"

// gatherer decides how long a committer lets others join before it commits. Those who were
// settled a moment ago are about to come back with their next append; the first of them
// would otherwise commit alone and the rest wait for a whole sync, in groups that take
// turns. So it gives way to goroutines that can run, as long as the group grows by it, up
// to the size that the last two groups had together. A lone writer, and writers that do
// other things between appends, wait for nobody.
type gatherer struct{ last, previous int }

// wait returns when it is time to commit. count tells how many have joined.
func (g *gatherer) wait(count func() int) {
	if target := g.last + g.previous; target > 2 {
		sleep.GiveWay(target, count)
	}
}

// took notes the size of a group.
func (g *gatherer) took(n int) { g.last, g.previous = n, g.last }
