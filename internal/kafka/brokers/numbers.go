package brokers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

const (
	// prefix is that of the one entry, numbersKey, which says which node has which number.
	prefix     = "brokers/"
	numbersKey = prefix + "numbers"
	// keptNumbers is how many nodes that are not there keep their numbers, so that a node which comes back
	// has the one that it had. Nodes whose names are drawn anew at each start come and never come back:
	// beyond so many the one that came longest ago is forgotten.
	keptNumbers = 64
)

// numbers says which node has which number. It is a value: what changes it gives another. No clock is in
// it, as nobody's decides who holds what: nodes are told apart by the order in which they came.
type numbers struct {
	// Joins is how often a node has come.
	Joins uint64 `json:"joins"`
	// Nodes have one row for each number, by number.
	Nodes []numbered `json:"nodes"`
}

type numbered struct {
	Number int32  `json:"number"`
	Node   string `json:"node"` // its ID
	// Joined is what Joins was when it came last.
	Joined uint64 `json:"joined"`
}

// of gives a node's number; zero: it has none.
func (n numbers) of(node string) int32 {
	for _, row := range n.Nodes {
		if row.Node == node {
			return row.Number
		}
	}
	return 0
}

// join gives a node that has come its number: the one that it has, or else the least that is free. Of the
// nodes that are not present only those keep theirs that came last.
func (n numbers) join(node string, present func(node string) bool) numbers {
	joined := numbers{Joins: n.Joins + 1, Nodes: slices.Clone(n.Nodes)}
	for i := range joined.Nodes {
		if joined.Nodes[i].Node == node {
			joined.Nodes[i].Joined = joined.Joins
			return joined
		}
	}
	joined.forget(present)
	free := 0 // the first row behind which a number is missing
	for free < len(joined.Nodes) && joined.Nodes[free].Number == int32(free)+1 {
		free++
	}
	joined.Nodes = slices.Insert(joined.Nodes, free, numbered{Number: int32(free) + 1, Node: node, Joined: joined.Joins})
	return joined
}

// forget drops the rows of nodes that are not present, those that came longest ago, until few enough are
// left that one more may come to be gone.
func (n *numbers) forget(present func(node string) bool) {
	gone := slices.DeleteFunc(slices.Clone(n.Nodes), func(r numbered) bool { return present(r.Node) })
	slices.SortFunc(gone, func(x, y numbered) int { return cmp.Compare(x.Joined, y.Joined) })
	for _, row := range gone[:max(0, len(gone)-keptNumbers)] {
		n.Nodes = slices.DeleteFunc(n.Nodes, func(r numbered) bool { return r == row })
	}
}

func encodeNumbers(n numbers) []byte {
	encoded, _ := json.Marshal(n) // such a struct always can be
	return encoded
}

// decodeNumbers refuses what would give two nodes one number, or a node two.
func decodeNumbers(e meta.Entry) (numbers, error) {
	var n numbers
	if err := json.Unmarshal(e.Value, &n); err != nil {
		return numbers{}, fmt.Errorf("read %s: %w", e.Key, err)
	}
	last, seen := int32(0), make(map[string]bool, len(n.Nodes))
	for _, row := range n.Nodes {
		if row.Number <= last || row.Node == "" || seen[row.Node] || row.Joined > n.Joins {
			return numbers{}, fmt.Errorf("read %s: the row of number %d cannot be", e.Key, row.Number)
		}
		last, seen[row.Node] = row.Number, true
	}
	return n, nil
}
