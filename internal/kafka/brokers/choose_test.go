package brokers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K1, K2: a key belongs to one node, whoever says so, and only the keys of a node that leaves move.
func TestChoose(t *testing.T) {
	nodes := []Node{{ID: 1}, {ID: 2}, {ID: 3}}
	count := map[int32]int{}
	for i := range 3000 {
		key := fmt.Append(nil, "group-", i)
		with := Choose(nodes, key)
		count[with.ID]++
		testkit.MustEqual(t, Choose([]Node{nodes[2], nodes[0], nodes[1]}, key), with, "in another order")
		without := Choose(slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.ID == 2 }), key)
		testkit.MustThat(t, with.ID == 2 || without == with, "a key of node %d moved to %d when another left", with.ID, without.ID)
	}
	for _, n := range nodes {
		testkit.That(t, count[n.ID] > 800 && count[n.ID] < 1200, "node %d has %d of 3000", n.ID, count[n.ID])
	}
}
