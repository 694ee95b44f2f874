package filter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// worst is an event that a publisher may choose, and a filter that others may have, for which
// the plain way to match them costs the product of the event's length and their number.
var worst = []struct {
	name, unit, operator, operand string
	// array: data.k is an array of units, else one text. typed: the filter is found by the
	// event's type, so that its condition is asked and not looked up.
	array, typed bool
}{
	{"numbers in an array", "%d,", "NumberGreaterThan", "-%d", true, false},
	{"one number in an array", "1,", "NumberIn", "[1,-%d]", true, false},
	{"one text in an array", `"x",`, "StringIn", `["x","y%d"]`, true, false},
	{"beginnings in an array", `"x",`, "StringBeginsWith", `["x","y%d"]`, true, false},
	{"a letter in an array", `"%d",`, "StringContains", `["x","y%d"]`, true, false},
	{"a part of a text", "needle%d ", "StringContains", `["needle-%d"]`, false, false},
	{"no part of a text, asked", "needle%d ", "StringNotContains", `["needle-%d"]`, false, true},
	{"no text in an array, asked", `"%d",`, "StringNotIn", `["needle-%d"]`, true, true},
	{"no number in an array, asked", "%d,", "NumberNotIn", "[-%d]", true, true},
	{"no ending in an array, asked", `"needle%d",`, "StringNotEndsWith", `["-%d"]`, true, true},
}

// G10: nobody can choose an event that keeps a processor busy for long: what it costs is in
// proportion to reading it, whatever the number of filters.
func TestNoEventIsMuchWorseThanItsSize(t *testing.T) {
	const size, crowd, allowed = 128 << 10, 2000, 300
	for _, w := range worst {
		t.Run(w.name, func(t *testing.T) {
			var filters []*Filter
			for i := range crowd {
				cfg := Config{Arrays: true, Advanced: []Condition{condition(w.operator, "data.k", fmt.Sprintf(w.operand, i+1))}}
				if w.typed {
					cfg.EventTypes = []string{"Blob.Created"}
				}
				filters = append(filters, mustCompile(t, cfg))
			}
			data := `"` + filled(w.unit, size) + `"`
			if w.array {
				data = "[" + strings.TrimSuffix(filled(w.unit, size), ",") + "]"
			}
			e, m := gridEvent(`{"k":`+data+`}`), NewIndex(filters).Matcher()
			read := fastest(5, func() { json.Valid(e.Data) })
			matched := fastest(1, func() { m.Match(e, nil) })
			if matched > allowed*read { // others may have held it up
				matched = fastest(3, func() { m.Match(e, nil) })
			}
			if t.Logf("%v, reading it %v", matched, read); matched > allowed*read {
				t.Errorf("took %v, more than %d times what reading it takes, %v", matched, allowed, read)
			}
		})
	}
}

func filled(unit string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.ReplaceAll(unit, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// fastest is how long something takes that others did not hold up.
func fastest(times int, what func()) time.Duration {
	best := time.Hour
	for range times {
		began := time.Now()
		what()
		best = min(best, time.Since(began))
	}
	return best
}
