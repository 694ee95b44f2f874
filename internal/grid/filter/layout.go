package filter

import (
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// layout says where the values of an event go: each key has a slot. The keys in data make a
// tree, so that one walk over the data finds all of them.
type layout struct {
	slots      int
	attributes []attributeSlot
	// extensions are the slots of the names that extensions may have.
	extensions map[string]int32
	nodes      []node // the first is data itself; none if nobody asks about data
}

type attributeSlot struct {
	slot      int32
	attribute schema.Attribute
}

// node is a member that is asked about, or has members that are.
type node struct {
	name  string
	slot  int32 // -1: only its members are asked about
	count int   // of its members
	// names are its members, those that differ in case only together.
	names []nodeName
	// lookup finds a name's index by its folded form where there are many.
	lookup map[string]int32
	// lengths has a bit for the length of each folded name, 63 for all that are longer.
	lengths uint64
}

type nodeName struct {
	folded  string
	members []int32
}

// manyNames is from where on a map is faster than looking at all.
const manyNames = 8

// newLayout gives each key its index as slot; keys differ.
func newLayout(keys []key) *layout {
	l := &layout{slots: len(keys), extensions: make(map[string]int32)}
	for i, k := range keys {
		slot := int32(i)
		if k.name != "" {
			a, own, known := schema.FindAttribute(k.name)
			if known {
				l.attributes = append(l.attributes, attributeSlot{slot, a})
			}
			if !own {
				l.extensions[k.name] = slot
			}
			continue
		}
		if len(l.nodes) == 0 {
			l.nodes = append(l.nodes, node{slot: -1})
		}
		at := int32(0)
		for _, name := range k.path {
			at = l.member(at, name)
		}
		l.nodes[at].slot = slot
	}
	return l
}

// member gives the node of a name beneath another, which is made if need be.
func (l *layout) member(of int32, name string) int32 {
	folded := foldString(name)
	names := l.nodes[of].find([]byte(folded))
	if names == nil {
		names = l.nodes[of].addName(folded)
	}
	for _, member := range names.members {
		if l.nodes[member].name == name {
			return member
		}
	}
	added := int32(len(l.nodes))
	names.members = append(names.members, added)
	l.nodes[of].count++
	l.nodes = append(l.nodes, node{name: name, slot: -1})
	return added
}

func (n *node) addName(folded string) *nodeName {
	n.names = append(n.names, nodeName{folded: folded})
	n.lengths |= lengthBit(len(folded))
	switch {
	case n.lookup != nil:
		n.lookup[folded] = int32(len(n.names) - 1)
	case len(n.names) > manyNames:
		n.lookup = make(map[string]int32)
		for i, name := range n.names {
			n.lookup[name.folded] = int32(i)
		}
	}
	return &n.names[len(n.names)-1]
}

func lengthBit(length int) uint64 { return 1 << min(length, 63) }

// find gives the members of a folded name, nil if there are none.
func (n *node) find(folded []byte) *nodeName {
	if n.lookup != nil {
		if i, ok := n.lookup[string(folded)]; ok {
			return &n.names[i]
		}
		return nil
	}
	for i := range n.names {
		if n.names[i].folded == string(folded) {
			return &n.names[i]
		}
	}
	return nil
}

// mayHave says false only if no member has such a name, judged by its length. Folding may
// change the length of what is not ASCII.
func (n *node) mayHave(name []byte) bool {
	return n.lengths&lengthBit(len(name)) != 0 || !isASCII(name)
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
