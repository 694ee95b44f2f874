package broker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// slotEntry is who has a slot, over all nodes, as the store keeps it. What is here is pure: what a
// change makes of it.
type slotEntry struct {
	// Holders have the slot, by the rule of admit.
	Holders []holder `json:"holders,omitempty"`
	// Leaving have lost it, and their nodes have not confirmed yet that they give nothing more to
	// their clients. Who comes waits for all of them, also for those whom another has evicted.
	Leaving []holder `json:"leaving,omitempty"`
}

// holder is a receiver in the entry of its slot.
type holder struct {
	// ID is the receiver's alone.
	ID   string       `json:"id"`
	Node cluster.Node `json:"node"`
	// Term is the node's in which it wrote that the receiver has the slot.
	Term  uint64 `json:"term"`
	Name  string `json:"name,omitempty"`
	Epoch *int64 `json:"epoch,omitempty"`
	// For is whom it has to go for; nil of who stays.
	For *successor `json:"for,omitempty"`
}

// successor is what one who has to go is told.
type successor struct {
	Name  string `json:"name,omitempty"`
	Epoch int64  `json:"epoch"`
}

func (h holder) claim() claim { return claim{h.Name, h.Epoch} }

// evicted is the error of one who has lost the slot.
func (h holder) evicted() *EvictedError {
	by := h.For
	if by == nil {
		by = &successor{Name: "another receiver"}
		if h.Epoch != nil {
			by.Epoch = *h.Epoch
		}
	}
	return h.claim().evictedBy(claim{by.Name, &by.Epoch})
}

func decodeSlot(e meta.Entry) (slotEntry, error) {
	var s slotEntry
	if err := json.Unmarshal(e.Value, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return s, nil
}

// empty: nobody has the slot, and nobody is waited for.
func (s slotEntry) empty() bool { return len(s.Holders)+len(s.Leaving) == 0 }

// holder finds one who has the slot.
func (s slotEntry) holder(id string) (holder, bool) { return findHolder(s.Holders, id) }

func findHolder(all []holder, id string) (holder, bool) {
	if i := slices.IndexFunc(all, func(h holder) bool { return h.ID == id }); i >= 0 {
		return all[i], true
	}
	return holder{}, false
}

// evictionOf is what became of one who does not have the slot any more.
func (s slotEntry) evictionOf(r *Receiver) *EvictedError {
	if h, ok := findHolder(s.Leaving, r.id); ok {
		return h.evicted()
	}
	lost := holder{Name: r.claim.name, Epoch: r.claim.epoch}
	for _, h := range s.Holders {
		if h.Epoch != nil {
			lost.For = &successor{h.Name, *h.Epoch}
		}
	}
	return lost.evicted()
}

// admit lets a newcomer in by the rule, past all who are gone for certain, or says why not.
func (s slotEntry) admit(newcomer holder, gone func(holder) bool) (next slotEntry, refusal error) {
	present := remaining(s.Holders, gone)
	claims := make([]claim, len(present))
	for i, h := range present {
		claims[i] = h.claim()
	}
	evict, refusal := admit(claims, newcomer.claim())
	if refusal != nil {
		return s, refusal
	}
	next.Leaving = remaining(s.Leaving, gone)
	for i, h := range present {
		if !slices.Contains(evict, i) {
			next.Holders = append(next.Holders, h)
			continue
		}
		h.For = &successor{newcomer.Name, *newcomer.Epoch}
		next.Leaving = append(next.Leaving, h)
	}
	next.Holders = append(next.Holders, newcomer)
	return next, nil
}

// without takes away who is gone.
func (s slotEntry) without(gone func(holder) bool) (next slotEntry, changed bool) {
	next = slotEntry{remaining(s.Holders, gone), remaining(s.Leaving, gone)}
	return next, len(next.Holders) != len(s.Holders) || len(next.Leaving) != len(s.Leaving)
}

// disconnect sends away all who have an epoch, in favour of nobody.
func (s slotEntry) disconnect(gone func(holder) bool) (next slotEntry, sent int) {
	next.Leaving = remaining(s.Leaving, gone)
	for _, h := range remaining(s.Holders, gone) {
		if h.Epoch == nil {
			next.Holders = append(next.Holders, h)
			continue
		}
		h.For = &successor{operator, *h.Epoch}
		next.Leaving = append(next.Leaving, h)
		sent++
	}
	return next, sent
}

// renew says that those of a node who still have the slot have it in a new term.
func (s slotEntry) renew(node cluster.Node, term uint64) (next slotEntry) {
	next = slotEntry{slices.Clone(s.Holders), s.Leaving}
	for i, h := range next.Holders {
		if h.Node == node {
			next.Holders[i].Term = term
		}
	}
	return next
}

func remaining(all []holder, gone func(holder) bool) []holder {
	return slices.DeleteFunc(slices.Clone(all), gone)
}

// operator is the name that stands for a person who disconnects receivers.
const operator = "an operator"

// Keys of slots. The prefix is that of an older name for them.
const slotsPrefix = "places/"

func hubSlotKeys(log string) string { return slotsPrefix + log + "/" }

func slotKeys(log, group string) string { return hubSlotKeys(log) + segment(group) + "/" }

func (at slotID) key() string { return slotKeys(at.log, at.group) + at.partition }

// slotOfKey is the slot that a key is of.
func slotOfKey(key string) (at slotID, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, slotsPrefix), "/")
	if len(parts) != 3 {
		return slotID{}, false
	}
	return slotID{log: parts[0], group: strings.ReplaceAll(parts[1], "%2F", "/"), partition: parts[2]}, true
}
