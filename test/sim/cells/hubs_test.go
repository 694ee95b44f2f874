package cells

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What a cell takes and hubs bring; docs/internals/scale.md names the source of each.
const (
	cellBytes   = 200e6            // a second, in
	highMark    = 0.80 * cellBytes // a hub has to move
	lowMark     = 0.75 * cellBytes // down to which
	startFill   = 0.45 * cellBytes // the mean of a day, of all cells together
	hubQuota    = 0.5 * cellBytes  // more than that no hub may bring
	streamBytes = 0.08 * cellBytes // a second: a hub has as many streams as it needs, at most 16
	copyBytes   = 0.1 * cellBytes  // a second: what a move may take of a cell
	swing       = 0.5              // of a hub's mean: its day goes up and down so much
	drift       = 0.001            // a day: with the jumps, twice as much in a year
	sigma       = 0.02             // a day: how much the growth of hubs differs
	jumps       = 1.0 / 2000       // of hubs a day: three times the load from then on
	churn       = 1.0 / 1000       // of hubs a day: one is deleted, and another comes
	retention   = 24 * 3600.0      // seconds
)

// load changes by the hour: a mean and a wave, so that loads can be added. The peak of hubs that are
// busy at different hours is less than the sum of their peaks.
type load struct{ mean, x, y float64 }

func (l load) peak() float64 { return l.mean + math.Hypot(l.x, l.y) }
func (l load) plus(m load, by float64) load {
	return load{l.mean + m.mean*by, l.x + m.x*by, l.y + m.y*by}
}
func capped(l load) load { return load{}.plus(l, min(1, hubQuota/l.peak())) }

// newHub is in one of three regions, whose noons are eight hours apart.
func newHub(r *rand.Rand, mean float64) load {
	noon := []int{0, 0, 0, 0, 0, 1, 1, 1, 2, 2}[r.IntN(10)]
	sin, cos := math.Sincos(float64(noon)*2*math.Pi/3 + r.NormFloat64()*0.3)
	return capped(load{mean, mean * swing * cos, mean * swing * sin})
}

// yard is hubs over cells, and what became of them.
type yard struct {
	r      *rand.Rand
	draws  int // a hub goes to the emptiest of so many cells, drawn at random
	hubs   []load
	cellOf []int
	cells  []load

	moves, stuck    int       // hubs moved; cells that stayed too full for want of room
	copied, largest float64   // bytes, of all moves and of one
	peaks           []float64 // of each cell on each day
}

func newYard(cells, hubs, draws int) *yard {
	y := &yard{r: chance("hubs"), draws: draws, cells: make([]load, cells), cellOf: make([]int, hubs)}
	for h, share := range zipf(y.r, hubs) {
		y.hubs = append(y.hubs, newHub(y.r, share*startFill*float64(cells)))
		y.put(h, y.choose(y.hubs[h], math.Inf(1)))
	}
	return y
}

// choose gives the cell for a hub, or -1 where it would leave every cell fuller than the limit.
func (y *yard) choose(hub load, limit float64) int {
	best, seen := -1, 0
	for _, c := range y.r.Perm(len(y.cells)) {
		if y.cells[c].plus(hub, 1).peak() > limit {
			continue
		}
		if best < 0 || y.cells[c].peak() < y.cells[best].peak() {
			best = c
		}
		if seen++; seen == y.draws {
			break
		}
	}
	return best
}

func (y *yard) put(h, cell int) {
	y.cellOf[h] = cell
	y.cells[cell] = y.cells[cell].plus(y.hubs[h], 1)
}

func (y *yard) take(h int) { y.cells[y.cellOf[h]] = y.cells[y.cellOf[h]].plus(y.hubs[h], -1) }

// day changes every hub, buys a cell when all are a tenth fuller than at the start, and relieves
// those that are too full.
func (y *yard) day(t *testing.T) {
	for h := range y.hubs {
		by := math.Exp(drift - sigma*sigma/2 + sigma*y.r.NormFloat64())
		y.take(h)
		cell := y.cellOf[h]
		switch of := y.r.Float64(); {
		case of < jumps:
			by *= 3
		case of < jumps+churn:
			y.hubs[h], by = newHub(y.r, y.hubs[y.r.IntN(len(y.hubs))].mean), 1
			if c := y.choose(y.hubs[h], highMark); c >= 0 {
				cell = c
			}
		}
		y.hubs[h] = capped(load{}.plus(y.hubs[h], by))
		y.put(h, cell)
	}
	total := 0.0
	for c := range y.cells {
		total += y.cells[c].mean
		y.peaks = append(y.peaks, y.cells[c].peak()/cellBytes)
	}
	if total > 1.1*startFill*float64(len(y.cells)) {
		y.cells = append(y.cells, load{})
	}
	for c := range y.cells {
		if y.cells[c].peak() > highMark {
			y.relieve(t, c)
		}
	}
}

// relieve moves hubs away until the cell is below its low mark. For the same relief as many bytes are
// copied whichever hubs go; so the largest that are not too large do, which are the fewest.
func (y *yard) relieve(t *testing.T, c int) {
	var mine []int
	for h, of := range y.cellOf {
		if of == c {
			mine = append(mine, h)
		}
	}
	slices.SortFunc(mine, func(a, b int) int { return int(y.hubs[b].peak() - y.hubs[a].peak()) })
	for i, h := range mine {
		need := y.cells[c].peak() - lowMark
		if need <= 0 {
			return
		}
		if y.hubs[h].peak() > need && i < len(mine)-1 {
			continue
		}
		target := y.choose(y.hubs[h], highMark)
		if target < 0 {
			continue
		}
		y.take(h)
		y.put(h, target)
		testkit.That(t, y.cells[target].peak() <= highMark+1, "a move fills cell %d with %.0f bytes/s", target, y.cells[target].peak())
		bytes := y.hubs[h].mean * retention
		y.moves, y.copied, y.largest = y.moves+1, y.copied+bytes, max(y.largest, bytes)
	}
	if y.cells[c].peak() > highMark {
		y.stuck++
	}
}

// audit counts anew what was kept up to date. Where each hub went to the emptiest cell and none has
// changed yet, no cell is fuller than the mean and one hub: the last hub of the fullest one found no
// cell with less, so it had the mean at most.
func (y *yard) audit(t *testing.T, unchanged bool) (fullest, largest float64, streams int) {
	t.Helper()
	again, streamsOf, sum := make([]load, len(y.cells)), make([]int, len(y.cells)), 0.0
	for h, c := range y.cellOf {
		peak := y.hubs[h].peak()
		again[c] = again[c].plus(y.hubs[h], 1)
		streamsOf[c] += min(16, 1+int(peak/streamBytes))
		sum, largest = sum+peak, max(largest, peak)
	}
	for c, is := range again {
		fullest = max(fullest, is.peak())
		testkit.That(t, math.Abs(is.mean-y.cells[c].mean) < 100, "cell %d has %.0f bytes/s, not %.0f", c, is.mean, y.cells[c].mean)
	}
	bounded := unchanged && y.draws >= len(y.cells)
	testkit.That(t, !bounded || fullest <= sum/float64(len(y.cells))+largest, "the fullest cell has %.0f bytes/s", fullest)
	return fullest / cellBytes, largest / cellBytes, slices.Max(streamsOf)
}

// C1: 10,000 hubs of very different load over cells, for a year.
func TestHubsOverCells(t *testing.T) {
	days := sized(60, 365)
	for _, cells := range sized([]int{5, 20}, []int{5, 7, 10, 20, 50}) {
		for _, draws := range []int{1, 2, 1000} {
			t.Run(fmt.Sprintf("%d cells, emptiest of %d", cells, min(draws, cells)), func(t *testing.T) {
				y := newYard(cells, 10_000, draws)
				fullest, largest, streams := y.audit(t, true)
				for range days {
					y.day(t)
				}
				y.audit(t, false)
				t.Logf("start: fullest %.2f, largest hub %.2f of a cell, streams up to %d; %d days: %d cells, peaks p50 %.2f p99 %.2f most %.2f; %d times no room; %.1f moves a week, %.0f GB a day, largest %.2f TB or %.0f h",
					fullest, largest, streams, days, len(y.cells), quantile(y.peaks, 0.5), quantile(y.peaks, 0.99), quantile(y.peaks, 1), y.stuck,
					7*float64(y.moves)/float64(days), y.copied/1e9/float64(days), y.largest/1e12, y.largest/copyBytes/3600)
			})
		}
	}
}
