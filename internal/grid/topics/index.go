package topics

import (
	"iter"
	"maps"
)

// Index has subscriptions by their IDs. It is a value of which nothing ever changes: the next one is made of it
// by an edit, and shares with it what stays. So one change among a hundred thousand costs a copy of some hundreds.
type Index struct {
	parts *[indexParts]map[string]*Subscription // nil: there are none
	size  int
}

// indexParts is into how many parts an index is divided, of which a change copies one.
const indexParts = 256

// partOf spreads IDs, which are random by themselves, and those of tests, which are not.
func partOf(id string) int {
	h := uint32(2166136261)
	for i := range len(id) {
		h = (h ^ uint32(id[i])) * 16777619
	}
	return int((h ^ h>>16) % indexParts)
}

// IndexOf makes an index.
func IndexOf(all ...*Subscription) Index {
	var e edit
	for _, s := range all {
		e.set(s)
	}
	return e.Index
}

// Get gives a subscription; nil: there is none of that ID.
func (x Index) Get(id string) *Subscription {
	if x.parts == nil {
		return nil
	}
	return x.parts[partOf(id)][id]
}

// Len is how many there are.
func (x Index) Len() int { return x.size }

// All gives all of them, in no order.
func (x Index) All() iter.Seq[*Subscription] {
	return func(yield func(*Subscription) bool) {
		if x.parts == nil {
			return
		}
		for _, part := range x.parts {
			for _, s := range part {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// edit is the next index in the making. It copies a part when that is changed for the first time.
type edit struct {
	Index
	begun bool             // parts is its own
	own   [indexParts]bool // and what is in it
}

// part gives that of an ID, to be changed.
func (e *edit) part(id string) map[string]*Subscription {
	if !e.begun {
		e.begun = true
		parts := new([indexParts]map[string]*Subscription)
		if e.parts != nil {
			*parts = *e.parts
		}
		e.parts = parts
	}
	at := partOf(id)
	if !e.own[at] {
		e.own[at] = true
		if e.parts[at] = maps.Clone(e.parts[at]); e.parts[at] == nil {
			e.parts[at] = make(map[string]*Subscription)
		}
	}
	return e.parts[at]
}

func (e *edit) set(s *Subscription) {
	part := e.part(s.ID)
	e.size -= len(part)
	part[s.ID] = s
	e.size += len(part)
}

func (e *edit) remove(id string) {
	part := e.part(id)
	e.size -= len(part)
	delete(part, id)
	e.size += len(part)
}
