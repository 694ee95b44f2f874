//go:build linux

package reliable

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The judge is no good unless it finds what is wrong.
func TestJudge(t *testing.T) {
	calls := func(ranges ...string) (all []entry) {
		for i, text := range ranges {
			events, err := parseRanges(text)
			testkit.Must(t, err)
			all = append(all, entry{at: int64(i), what: "ok", events: events})
		}
		return all
	}
	for _, c := range []struct {
		name    string
		done    []entry
		away    []int64
		wrong   string // empty: nothing is
		repeats int64
	}{
		{name: "all done in order", done: calls("0-3", "4-9")},
		{name: "some put away", done: calls("0-1", "4-8"), away: []int64{2, 3, 9}},
		{name: "repeats after a death", done: calls("0-5", "3-7", "8-9"), repeats: 3},
		{name: "a call that goes on where another began", done: calls("0-3", "0-9"), repeats: 4},
		{name: "one lost", done: calls("0-3", "5-9"), wrong: "event 5 came before 4 was done"},
		{name: "the last lost", done: calls("0-8"), wrong: "done up to 9 of 10"},
		{name: "nothing done", wrong: "done up to 0 of 10"},
		{name: "two in the wrong order", done: calls("0-3", "5-5", "4-4", "6-9"), wrong: "event 5 came before 4 was done", repeats: 1},
		{name: "one done after it was put away", done: calls("0-9"), away: []int64{4}, wrong: "event 4 was put away, and done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judgePartition(c.done, c.away, 10)
			if wrong := strings.Join(v.wrong, "; "); (wrong == "") != (c.wrong == "") || !strings.Contains(wrong, c.wrong) {
				t.Errorf("found %q, not %q", wrong, c.wrong)
			}
			testkit.Equal(t, v.repeats, c.repeats, "found repeats")
		})
	}
}
