package entries

import (
	"slices"
	"sort"
)

// index keeps keys in byte order: a list of runs, each sorted, none longer than maxRun. A key is
// found by two binary searches and added by moving half a run.
type index struct{ runs [][]string }

const maxRun = 512

// find gives the run that has or would take the key, and where in it.
func (x *index) find(key string) (run, at int, there bool) {
	run = max(sort.Search(len(x.runs), func(i int) bool { return x.runs[i][0] > key })-1, 0)
	if len(x.runs) == 0 {
		return 0, 0, false
	}
	at, there = slices.BinarySearch(x.runs[run], key)
	return run, at, there
}

func (x *index) add(key string) {
	run, at, there := x.find(key)
	switch {
	case there:
		return
	case len(x.runs) == 0:
		x.runs = [][]string{{key}}
		return
	}
	x.runs[run] = slices.Insert(x.runs[run], at, key)
	if keys := x.runs[run]; len(keys) > maxRun {
		half := len(keys) / 2
		x.runs[run] = slices.Clip(keys[:half])
		x.runs = slices.Insert(x.runs, run+1, slices.Clone(keys[half:]))
	}
}

func (x *index) remove(key string) {
	run, at, there := x.find(key)
	if !there {
		return
	}
	if x.runs[run] = slices.Delete(x.runs[run], at, at+1); len(x.runs[run]) == 0 {
		x.runs = slices.Delete(x.runs, run, run+1)
	}
}

// from calls yield with the keys from one on, in order, until it gives false.
func (x *index) from(key string, yield func(string) bool) {
	if len(x.runs) == 0 {
		return
	}
	run, at, _ := x.find(key)
	for ; run < len(x.runs); run, at = run+1, 0 {
		for _, k := range x.runs[run][at:] {
			if !yield(k) {
				return
			}
		}
	}
}
