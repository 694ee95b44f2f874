package model

import (
	"container/heap"
	"sync"
	"time"
)

// agenda calls functions when their time has come, one after the other, in the order of their times
// and, of equal times, in that in which they were entered. The zero value is empty. It has a timer
// while something is entered, and a goroutine while a function runs.
type agenda struct {
	mu      sync.Mutex
	entries entries
	entered uint64 // how many were, ever
	running bool
	timer   *time.Timer // for the first entry, unless running
}

// at enters a function.
func (a *agenda) at(due time.Time, do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entered++
	heap.Push(&a.entries, entry{due, a.entered, do})
	if a.entries[0].number == a.entered && !a.running {
		a.armLocked()
	}
}

func (a *agenda) armLocked() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if len(a.entries) > 0 {
		a.timer = time.AfterFunc(time.Until(a.entries[0].due), a.run)
	}
}

// run calls what is due. A timer that was stopped too late finds another running, or nothing due.
func (a *agenda) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running {
		return
	}
	a.running = true
	for len(a.entries) > 0 && !a.entries[0].due.After(time.Now()) {
		next := heap.Pop(&a.entries).(entry)
		a.mu.Unlock()
		next.do()
		a.mu.Lock()
	}
	a.running = false
	a.armLocked()
}

type entry struct {
	due    time.Time
	number uint64
	do     func()
}

// entries is a heap, the first to be done on top.
type entries []entry

func (e entries) Len() int      { return len(e) }
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e entries) Less(i, j int) bool {
	if !e[i].due.Equal(e[j].due) {
		return e[i].due.Before(e[j].due)
	}
	return e[i].number < e[j].number
}
func (e *entries) Push(x any) { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = entry{}
	*e = (*e)[:last]
	return x
}
