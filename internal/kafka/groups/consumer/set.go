package consumer

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// TopicID tells incarnations of a hub apart: one that is deleted and made anew has another.
type TopicID [16]byte

// Topic is a hub as groups see it.
type Topic struct {
	ID         TopicID
	Name       string
	Partitions int32
}

// Partition is one partition of a hub.
type Partition struct {
	Topic  TopicID
	Number int32
}

func (p Partition) compare(q Partition) int {
	return cmp.Or(bytes.Compare(p.Topic[:], q.Topic[:]), cmp.Compare(p.Number, q.Number))
}

// Set is partitions in order, each once. It is never changed in place, so that sets can be shared.
type Set []Partition

// SetOf makes a set of partitions in any order, also of repeated ones. It keeps the slice.
func SetOf(partitions []Partition) Set {
	slices.SortFunc(partitions, Partition.compare)
	return slices.Compact(partitions)
}

// Equal: the same partitions.
func (s Set) Equal(other Set) bool { return slices.Equal(s, other) }

// Without gives what is in s and not in other.
func (s Set) Without(other Set) Set { return s.sift(other, false) }

// And gives what is in both.
func (s Set) And(other Set) Set { return s.sift(other, true) }

// Topics are the partitions by hub, in order.
func (s Set) Topics() iter.Seq2[TopicID, []int32] {
	return func(yield func(TopicID, []int32) bool) {
		for first := 0; first < len(s); {
			var numbers []int32
			for _, p := range s[first:] {
				if p.Topic != s[first].Topic {
					break
				}
				numbers = append(numbers, p.Number)
			}
			if !yield(s[first].Topic, numbers) {
				return
			}
			first += len(numbers)
		}
	}
}

// Within: everything of s is in other.
func (s Set) Within(other Set) bool { return len(s.Without(other)) == 0 }

// Or gives what is in one of them.
func (s Set) Or(other Set) Set {
	if len(other) == 0 {
		return s
	}
	return SetOf(slices.Concat(s, other))
}

// sift goes through both at once and keeps what of s is in other, or is not. What loses nothing is s itself.
func (s Set) sift(other Set, in bool) Set {
	if len(s) == 0 || len(other) == 0 {
		if in {
			return nil
		}
		return s
	}
	var kept Set
	for _, p := range s {
		for len(other) > 0 && other[0].compare(p) < 0 {
			other = other[1:]
		}
		if found := len(other) > 0 && other[0] == p; found == in {
			kept = append(kept, p)
		}
	}
	return kept
}
