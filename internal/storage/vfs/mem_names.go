package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// node is a file or a folder of a Mem.
type node struct {
	// children are a folder's names as programs see them; nil for a file.
	children map[string]*node
	content  content
	// unlinked: no name leads here. A file's room is free once handles is zero too.
	unlinked bool
	handles  int
}

func newDir() *node { return &node{children: make(map[string]*node)} }

func newFile() *node { return &node{content: newContent()} }

func (n *node) isDir() bool { return n.children != nil }

// link is a name in a folder. The folder is meant itself, wherever it may be moved.
type link struct {
	dir  *node
	name string
}

// change is one change of names: a creation has no from, a removal no to.
type change struct {
	from, to link
	node     *node
	// waits are the folders whose SyncDir is still missing.
	waits []*node
}

// names is what the disk knows of folders: durable links, and the changes since, in
// the order they were made. Unlike a journal, which keeps a beginning of that order,
// it lets any of them survive whose survival makes sense without the lost ones.
type names struct {
	durable map[link]*node
	pending []*change
}

func newNames() names { return names{durable: make(map[link]*node)} }

// add records a change that is not durable yet.
func (n *names) add(c *change) {
	if c.from.dir != nil {
		c.waits = append(c.waits, c.from.dir)
	}
	if c.to.dir != nil && c.to.dir != c.from.dir {
		c.waits = append(c.waits, c.to.dir)
	}
	n.pending = append(n.pending, c)
}

// sync makes the changes in a folder durable. One that moves between folders waits
// for both, unless something durable stands on it.
func (n *names) sync(dir *node) {
	for _, c := range n.pending {
		c.waits = slices.DeleteFunc(c.waits, func(d *node) bool { return d == dir })
	}
	n.settle()
}

// addDurable records a change that is durable at once, with all that it stands on.
func (n *names) addDurable(c *change) {
	n.pending = append(n.pending, c)
	n.settle()
}

// settle moves to durable the changes that wait for nothing, and what they stand on.
func (n *names) settle() {
	var settled []*change // newest first
	var pending []*change
	for _, c := range slices.Backward(n.pending) {
		if len(c.waits) == 0 || slices.ContainsFunc(settled, func(later *change) bool { return later.standsOn(c) }) {
			settled = append(settled, c)
		} else {
			pending = append(pending, c)
		}
	}
	for _, c := range slices.Backward(settled) {
		c.apply(n.durable)
	}
	slices.Reverse(pending)
	n.pending = pending
}

// cut gives the links that may be found after a power loss.
func (n *names) cut(rnd *rand.Rand) map[link]*node {
	links := maps.Clone(n.durable)
	fate := chooseFate(rnd)
	journal := rnd.IntN(2) == 0 // a beginning survives, as on a journaling file system
	var lost []*change
	for _, c := range n.pending {
		orphaned := slices.ContainsFunc(lost, c.standsOn)
		switch {
		case orphaned, journal && len(lost) > 0, !fate.survives(rnd):
			lost = append(lost, c)
		default:
			c.apply(links)
		}
	}
	return links
}

func (c *change) apply(links map[link]*node) {
	if c.from.dir != nil {
		delete(links, c.from)
	}
	if c.to.dir != nil {
		links[c.to] = c.node
	}
}

// standsOn reports whether c cannot be on the disk without an earlier change: both
// touch the same name; or c removes a folder, which was empty only thanks to the
// other; or c moves a folder, which without the other could end up inside itself.
func (c *change) standsOn(earlier *change) bool {
	if c.touches(earlier.from) || c.touches(earlier.to) {
		return true
	}
	if !c.node.isDir() {
		return false
	}
	removal, move := c.to.dir == nil, c.from.dir != nil && c.to.dir != nil
	return move || removal && (earlier.from.dir == c.node || earlier.to.dir == c.node)
}

func (c *change) touches(l link) bool {
	return l.dir != nil && (l == c.from || l == c.to)
}
