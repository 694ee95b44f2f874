package main

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestSparkline(t *testing.T) {
	known := func(values ...float64) (all []*float64) {
		for _, v := range values {
			if v < 0 {
				all = append(all, nil)
			} else {
				all = append(all, &v)
			}
		}
		return all
	}
	testkit.Equal(t, sparkline(known(0, 1, 7, -1, 3.5), 60), "▁▂█ ▄", "each value has a column")
	testkit.Equal(t, sparkline(known(0, 1, 7, -1, 3.5, 0), 3), "▂█▄", "of several the largest is drawn")
	testkit.Equal(t, sparkline(known(0, 0), 3), "▁▁", "nothing happens")
	testkit.Equal(t, sparkline(nil, 3), "", "no values")
	now, mean, most := sumUp(known(1, 2, -1, 0.5))
	testkit.Equal(t, now+" "+mean+" "+most, "0.5 1.2 2", "newest, mean and largest")
	now, _, _ = sumUp(known(-1))
	testkit.Equal(t, now, "-", "nothing is known")
}
