// Package watermark keeps the watermark of work that is begun in order and finished in
// any: the number below which everything is done. It is a plain value without a lock.
package watermark

import (
	"cmp"
	"fmt"
	"slices"
)

// Mark is such a mark. Its zero value begins at 0; use At. A copy shares what is under way
// with its original: use one of them only.
//
// Only what is under way takes room. Numbers that were passed or finished are not kept,
// however far they are above the mark: a lane that waits for one event and passes a million
// that do not concern it costs nothing.
type Mark struct {
	next int64
	// begun is what was begun, rising, from head on: first one that is open, then open ones
	// and, until they are the greater half and swept out, finished ones.
	begun []work
	head  int
	open  int
}

type work struct {
	n    int64
	done bool
}

// sweepFrom is how many must be kept for sweeping to be worth it.
const sweepFrom = 32

// At gives a mark below which everything is done.
func At(n int64) Mark { return Mark{next: n} }

// Begin says that n is under way; n is not below what was begun or passed before. What it
// leaves out can not be begun any more, and so is passed.
func (m *Mark) Begin(n int64) {
	if n < m.next {
		panic(fmt.Sprintf("watermark: %d begun behind %d", n, m.next))
	}
	m.begun = append(m.begun, work{n: n})
	m.open++
	m.next = n + 1
}

// Pass says that everything below n that was not begun needs nothing.
func (m *Mark) Pass(n int64) { m.next = max(m.next, n) }

// Finish says that n is done; saying it again, or of what was never begun, does nothing. The
// cost is constant where numbers are begun without gaps, else that of a binary search among
// those under way.
func (m *Mark) Finish(n int64) {
	i, ok := m.find(n)
	if !ok {
		return
	}
	m.begun[i].done = true
	m.open--
	for m.head < len(m.begun) && m.begun[m.head].done {
		m.head++
	}
	// What is finished is forgotten when it is at least half, so that each number pays for one
	// other.
	if m.open == 0 || len(m.begun) >= sweepFrom && m.open < len(m.begun)/2 {
		open := slices.DeleteFunc(m.begun[m.head:], func(w work) bool { return w.done })
		m.begun = m.begun[:copy(m.begun, open)]
		m.head = 0
	}
}

// find gives the index of a number that is under way.
func (m *Mark) find(n int64) (int, bool) {
	begun := m.begun[m.head:]
	if len(begun) == 0 || n < begun[0].n || n >= m.next {
		return 0, false
	}
	i := int(min(n-begun[0].n, int64(len(begun)-1))) // where it is, if there are no gaps
	if begun[i].n != n {
		i, _ = slices.BinarySearchFunc(begun[:i+1], n, func(w work, n int64) int { return cmp.Compare(w.n, n) })
	}
	if i == len(begun) || begun[i].n != n || begun[i].done {
		return 0, false
	}
	return m.head + i, true
}

// Low is the mark: everything below is done, and it is the lowest that is under way or, if
// none is, Next.
func (m *Mark) Low() int64 {
	if m.open == 0 {
		return m.next
	}
	return m.begun[m.head].n
}

// Open is how many are under way.
func (m *Mark) Open() int { return m.open }

// Next is the lowest number not yet begun or passed.
func (m *Mark) Next() int64 { return m.next }

// Has reports whether n is under way.
func (m *Mark) Has(n int64) bool {
	_, ok := m.find(n)
	return ok
}
