// Package measure is what the load programs share: figures taken round by round, tables of them for a document, what
// Linux tells of processes and of the machine, and waiting that is exact.
package measure

import (
	"fmt"
	"math"
	"slices"
)

// Series are the values of one figure, one per round.
type Series []float64

// Median is the value in the middle, or the mean of the two there.
func (s Series) Median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Spread is the least and the most, for a table.
func (s Series) Spread() string {
	if len(s) < 2 {
		return "–"
	}
	return Number(slices.Min(s)) + " – " + Number(slices.Max(s))
}

// Over divides round by round.
func (s Series) Over(other Series) Series {
	ratios := make(Series, min(len(s), len(other)))
	for i := range ratios {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// Number writes a value with three digits that count.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case size >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case size >= 1e4:
		return fmt.Sprintf("%.1f k", v/1e3)
	case size >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}
