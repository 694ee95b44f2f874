package consumer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// uniform gives members as equally many partitions as their subscriptions allow, and leaves with each what
// it has as far as that goes.
//
// Hubs with the same subscribers are one pool: which of its partitions a member has does not matter, only
// how many. Where all subscribe to the same there is one pool, and the division is exact: nobody has two
// more than another, and no partition moves that need not. Several pools are divided in turn, each as
// evenly as what its subscribers have of the others allows, again and again until nothing changes.
func uniform(in problem) map[string]Set {
	pools := in.pools()
	load := make([]int, len(in.members)) // partitions of each member, in all pools
	for _, p := range pools {
		for i, member := range p.subscribers {
			load[member] += p.counts[i]
		}
	}
	for range maxPasses {
		settled := true
		for _, p := range pools {
			settled = !p.divide(load) && settled
		}
		if settled {
			break
		}
	}
	given := make(map[string][]Partition, len(in.members))
	for _, p := range pools {
		p.deal(func(member int, partitions []Partition) {
			id := in.members[member].id
			given[id] = append(given[id], partitions...)
		})
	}
	sets := make(map[string]Set, len(given))
	for id, partitions := range given {
		sets[id] = SetOf(partitions)
	}
	return sets
}

// maxPasses bounds what odd subscriptions can cost. Each division brings members closer together, so that a
// few passes do; after the last one some member may have two partitions more than another.
const maxPasses = 32

// pool is the hubs that have the same subscribers.
type pool struct {
	subscribers []int // numbers of members, in order
	partitions  Set
	held        []Set // by subscriber: what it has of the pool so far
	counts      []int // by subscriber: how many it has, or is to have
}

// pools gives those with the fewest subscribers first: they leave the least choice.
func (p problem) pools() []*pool {
	bySubscribers := make(map[string]*pool)
	of := make(map[TopicID]*pool)
	subscribers := p.subscribers()
	topics := slices.SortedFunc(maps.Keys(subscribers), func(a, b TopicID) int { return bytes.Compare(a[:], b[:]) })
	var all []*pool
	for _, topic := range topics {
		var key []byte
		for _, member := range subscribers[topic] {
			key = binary.AppendUvarint(key, uint64(member))
		}
		one := bySubscribers[string(key)]
		if one == nil {
			n := len(subscribers[topic])
			one = &pool{subscribers: subscribers[topic], held: make([]Set, n), counts: make([]int, n)}
			bySubscribers[string(key)] = one
			all = append(all, one)
		}
		of[topic] = one
		for n := range p.partitions[topic] {
			one.partitions = append(one.partitions, Partition{topic, n})
		}
	}
	for member, m := range p.members {
		for _, held := range m.held {
			one := of[held.Topic]
			if one == nil || held.Number >= p.partitions[held.Topic] {
				continue // the hub is gone, or nobody wants it any more
			}
			if i, subscribes := slices.BinarySearch(one.subscribers, member); subscribes {
				one.held[i] = append(one.held[i], held)
				one.counts[i]++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *pool) int { return cmp.Compare(len(a.subscribers), len(b.subscribers)) })
	return all
}

// divide says anew how many partitions of the pool each subscriber is to have, by what it has of others,
// and whether that differs from before. It is like pouring water over uneven ground: what is low is filled
// up to one level. What does not suffice for another whole partition for all goes to those who have one
// more already.
func (p *pool) divide(load []int) (changed bool) {
	n := len(p.subscribers)
	others := make([]int, n) // partitions of other pools, by subscriber
	for i, member := range p.subscribers {
		others[i] = load[member] - p.counts[i]
	}
	ground := slices.Sorted(slices.Values(others))
	level, sum := 0, 0
	for i, height := range ground { // the i lowest are under water, and the next is if the level reaches it
		if i > 0 && height >= level {
			break
		}
		sum += height
		level = (len(p.partitions) + sum) / (i + 1)
	}
	left := len(p.partitions)
	want := make([]int, n)
	var brim []int // who may have one more
	for i, height := range others {
		if height <= level {
			want[i] = level - height
			left -= want[i]
			brim = append(brim, i)
		}
	}
	slices.SortStableFunc(brim, func(a, b int) int { return cmp.Compare(p.counts[b]-want[b], p.counts[a]-want[a]) })
	for _, i := range brim[:left] {
		want[i]++
	}
	for i, member := range p.subscribers {
		changed = changed || want[i] != p.counts[i]
		load[member] = others[i] + want[i]
	}
	p.counts = want
	return changed
}

// deal gives each subscriber as many as it is to have: first what it has, then what is free, in turn, so
// that each hub comes to many.
func (p *pool) deal(give func(member int, partitions []Partition)) {
	free := p.partitions
	kept := make([]Set, len(p.subscribers))
	for i := range p.subscribers {
		kept[i] = p.held[i][:min(p.counts[i], len(p.held[i]))]
		free = free.Without(kept[i])
	}
	var short []int // who has too few
	for i := range p.subscribers {
		if give(p.subscribers[i], kept[i]); len(kept[i]) < p.counts[i] {
			short = append(short, i)
		}
	}
	more := make([][]Partition, len(p.subscribers))
	for turn := 0; len(free) > 0; turn++ {
		at := turn % len(short)
		i := short[at]
		more[i], free = append(more[i], free[0]), free[1:]
		if len(kept[i])+len(more[i]) == p.counts[i] {
			short = slices.Delete(short, at, at+1)
			turn--
		}
	}
	for i, member := range p.subscribers {
		give(member, more[i])
	}
}
