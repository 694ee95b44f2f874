package cells

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

var (
	large = flag.Bool("cells.large", false, "simulate at full size, which takes minutes: the figures of docs/internals/scale.md")
	seed  = flag.Uint64("cells.seed", 1, "the seed")
)

// sized is one value for the usual run and one for the large one.
func sized[T any](usual, full T) T {
	if *large {
		return full
	}
	return usual
}

// hash is the one that shards are found by.
func hash(text string) uint64 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return uint64(h.Sum32())
}

// chance is a source of random numbers for one purpose.
func chance(purpose string) *rand.Rand { return rand.New(rand.NewPCG(*seed, hash(purpose))) }

// zipf gives n shares that sum to one and are as 1, 1/2, 1/3 …, in random order.
func zipf(r *rand.Rand, n int) []float64 {
	shares, sum := make([]float64, n), 0.0
	for i := range shares {
		sum += 1 / float64(i+1)
	}
	for i, rank := range r.Perm(n) {
		shares[i] = 1 / float64(rank+1) / sum
	}
	return shares
}

// quantile of values, which it sorts.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
