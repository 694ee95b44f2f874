package brokers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func nobody(string) bool { return false }

func everybody(string) bool { return true }

// K1: which number a node gets.
func TestNumbers(t *testing.T) {
	abc := numbers{}.join("a", everybody).join("b", everybody).join("c", everybody)
	for name, test := range map[string]struct {
		before numbers
		node   string
		want   int32
	}{
		"the first":                         {numbers{}, "a", 1},
		"the next":                          {abc, "d", 4},
		"who comes again has the same":      {abc, "b", 2},
		"a number that is free":             {numbers{Joins: 3, Nodes: []numbered{{1, "a", 1}, {3, "c", 3}}}, "d", 2},
		"the first number, where it is so":  {numbers{Joins: 3, Nodes: []numbered{{2, "b", 2}, {3, "c", 3}}}, "d", 1},
		"who has none but whose name is in": {abc, "aa", 4},
	} {
		t.Run(name, func(t *testing.T) {
			after := test.before.join(test.node, everybody)
			testkit.Equal(t, after.of(test.node), test.want)
			for _, row := range test.before.Nodes {
				testkit.Equal(t, after.of(row.Node), row.Number, "node %s", row.Node)
			}
			read, err := decodeNumbers(meta.Entry{Key: numbersKey, Value: encodeNumbers(after)})
			testkit.Must(t, err)
			testkit.Deep(t, read, after)
		})
	}
}

// K1, K6: nodes whose names are new each time leave a bounded number of rows behind, and those who are there
// keep theirs, however long ago they came.
func TestNumbersOfNodesThatAreGone(t *testing.T) {
	all := numbers{}.join("old", everybody).join("gone", everybody)
	present := func(node string) bool { return node == "old" }
	for i := range 10 * keptNumbers {
		came := fmt.Sprint("pod-", i)
		all = all.join(came, func(node string) bool { return present(node) || node == came })
		testkit.MustEqual(t, all.of("old"), int32(1), "number of the node that is there")
		testkit.MustThat(t, all.of(came) != 0 && all.of(came) <= keptNumbers+3, "%s has number %d", came, all.of(came))
		if i < keptNumbers-1 {
			testkit.MustEqual(t, all.of("gone"), int32(2), "number of a node that left not long ago, after %d others", i)
		}
	}
	testkit.Equal(t, all.of("gone"), int32(0), "number of a node that left long ago")
	testkit.That(t, len(all.Nodes) <= keptNumbers+2, "%d rows are kept", len(all.Nodes))
	testkit.That(t, slices.IsSortedFunc(all.Nodes, func(x, y numbered) int { return int(x.Number - y.Number) }), "they have no order: %v", all.Nodes)

	// Who comes back in time counts as one that came last.
	back := numbers{}.join("first", nobody)
	for i := range keptNumbers - 1 {
		back = back.join(fmt.Sprint("pod-", i), nobody)
	}
	back = back.join("first", nobody).join("one more", nobody).join("and another", nobody)
	testkit.Equal(t, back.of("first"), int32(1))
	testkit.Equal(t, back.of("pod-0"), int32(0))
}

// An entry that would give two nodes one number, or a node two, is not believed.
func TestNumbersThatCannotBe(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":          `{`,
		"one number twice": `{"joins":2,"nodes":[{"number":1,"node":"a","joined":1},{"number":1,"node":"b","joined":2}]}`,
		"one node twice":   `{"joins":2,"nodes":[{"number":1,"node":"a","joined":1},{"number":2,"node":"a","joined":2}]}`,
		"no order":         `{"joins":2,"nodes":[{"number":2,"node":"a","joined":1},{"number":1,"node":"b","joined":2}]}`,
		"no number":        `{"joins":1,"nodes":[{"number":0,"node":"a","joined":1}]}`,
		"no node":          `{"joins":1,"nodes":[{"number":1,"node":"","joined":1}]}`,
		"from the future":  `{"joins":1,"nodes":[{"number":1,"node":"a","joined":2}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeNumbers(meta.Entry{Key: numbersKey, Value: []byte(text)})
			testkit.That(t, err != nil, "it is believed")
		})
	}
}
