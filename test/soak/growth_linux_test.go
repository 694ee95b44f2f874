package soak

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// growth is what one size of a yard has come to: a row of a table.
type growth struct {
	Of   string
	Size int
	// Made is how long it took to make them. Resident is what the process had of the machine's memory then, or
	// once all had their first event, Rested after a restart, Busy when all had been used once more: MiB.
	Made                   time.Duration
	Resident, Rested, Busy int
	Descriptors            int
	Disk                   int64 // bytes
	Start, Stop            time.Duration
}

// print writes the row where a grep for "growth |" finds it.
func (f *growth) print(t *testing.T) {
	t.Helper()
	t.Log("growth | of | size | made | resident | rested | busy | descriptors | on disk | start | stop |")
	cells := []any{
		f.Of, f.Size, f.Made.Round(time.Second), mebibytes(f.Resident), mebibytes(f.Rested), mebibytes(f.Busy),
		f.Descriptors, mebibytes(int(f.Disk >> 20)), f.Start.Round(time.Millisecond), f.Stop.Round(time.Millisecond),
	}
	row := "growth |"
	for _, cell := range cells {
		row += fmt.Sprintf(" %v |", cell)
	}
	t.Log(row)
}

func mebibytes(n int) string { return fmt.Sprintf("%d MiB", n) }

// sizes reads a list of them.
func sizes(t *testing.T, list string) (all []int) {
	t.Helper()
	for text := range strings.SplitSeq(list, ",") {
		n := testkit.Value(strconv.Atoi(strings.TrimSpace(text)))(t)
		testkit.MustThat(t, n > 0, "a size of %d", n)
		all = append(all, n)
	}
	return all
}
