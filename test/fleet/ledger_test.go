//go:build linux

package fleet

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// call is one call of a handler, put together from a worker's notes.
type call struct {
	worker      string
	partition   string
	epoch       int64
	first, last int64
	// began, done and saved are on the machine's clock; zero: it never came to that.
	began, done, saved int64
}

func (c call) String() string {
	return fmt.Sprintf("%s %d..%d by %s under epoch %d", c.partition, c.first, c.last, c.worker, c.epoch)
}

// readLedger gives the calls of a worker, in order, by partition.
func readLedger(t *testing.T, worker, path string) []*call {
	t.Helper()
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer file.Close()
	var calls []*call
	open := map[string]*call{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var at int64
		var what string
		c := call{worker: worker}
		if _, err := fmt.Sscanf(lines.Text(), "%d %s", &at, &what); err != nil || what == "error" {
			t.Logf("%s: %s", worker, lines.Text())
			continue
		}
		rest := strings.SplitN(lines.Text(), " ", 3)[2]
		if _, err := fmt.Sscanf(rest, "%s %d %d %d", &c.partition, &c.epoch, &c.first, &c.last); err != nil {
			t.Fatalf("%s: %q: %v", worker, lines.Text(), err)
		}
		switch what {
		case "start":
			c.began = at
			open[c.partition] = &c
			calls = append(calls, &c)
		case "done":
			open[c.partition].done = at
		case "saved":
			open[c.partition].saved = at
		}
	}
	return calls
}

// judge looks at all calls of one partition, in the order in which they began: nothing
// left out, nothing out of order, no two owners, and repeats only behind a kill and only past the
// checkpoint. // P1, P3, P9
func judge(t *testing.T, partition string, calls []*call, events int64, killed map[string]bool) (repeats int64) {
	t.Helper()
	slices.SortFunc(calls, func(a, b *call) int { return cmp.Compare(a.began, b.began) })
	var last *call // that has been done
	var next, reached, saved int64 = 0, -1, -1
	var epoch int64
	for _, c := range calls {
		switch {
		case c.epoch < epoch:
			t.Errorf("%v began after epoch %d had", c, epoch)
		case last != nil && c.began < last.done:
			t.Errorf("%v began before %v had ended", c, last)
		case c.first > next:
			t.Errorf("%v left out %d..%d", c, next, c.first-1)
		case c.first < next && !killed[last.worker]:
			t.Errorf("%v repeats what %v had done, though nobody was killed", c, last)
		case c.first < next && c.first <= saved:
			t.Errorf("%v repeats what was saved up to %d", c, saved)
		}
		epoch = max(epoch, c.epoch)
		if c.done == 0 {
			continue
		}
		repeats += max(0, min(reached, c.last)-c.first+1)
		next, reached, last = c.last+1, max(reached, c.last), c
		if c.saved != 0 {
			saved = max(saved, c.last)
		}
	}
	if next != events {
		t.Errorf("partition %s: handled up to %d of %d events", partition, next-1, events)
	}
	return repeats
}
