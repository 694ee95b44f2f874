package balance

import (
	"cmp"
	"slices"
)

// pour gives room for n partitions to the members that miss most, one by one and at most so
// many to each, and says for how many there was room.
func (p *picture) pour(n, each int) int {
	most := 0
	for _, m := range p.members {
		m.room = 0
		most = max(most, m.missing())
	}
	given := 0
	for level := most; level > 0; level-- {
		for _, m := range p.members {
			if given < n && m.missing() >= level && m.room < each {
				m.room++
				given++
			}
		}
	}
	return given
}

// surplus picks n partitions of those that have too many, always from who has most too many.
func (p *picture) surplus(n int) []*slot {
	if n == 0 {
		return nil
	}
	spare, most := p.spare()
	var picked []*slot
	for level := most; level > 0; level-- {
		for _, m := range p.members {
			if own := spare[m]; -m.missing() >= level && len(own) > 0 && len(picked) < n {
				picked, spare[m] = append(picked, own[0]), own[1:]
			}
		}
	}
	return picked
}

// spare is what those have that have too many, what is least theirs first, and how many the
// first of them has too many. What is asked for already is not among it.
func (p *picture) spare() (map[*member][]*slot, int) {
	spare, most := make(map[*member][]*slot), 0
	for _, at := range p.slots {
		if at.owner != nil && at.next == nil && at.owner.missing() < 0 {
			spare[at.owner] = append(spare[at.owner], at)
			most = max(most, -at.owner.missing())
		}
	}
	for owner, own := range spare {
		slices.SortStableFunc(own, func(a, b *slot) int { return cmp.Compare(mix(owner.hash^a.hash), mix(owner.hash^b.hash)) })
	}
	return spare, most
}

// match says who gets which of the partitions, for as many as there is room for: each goes
// to the member with room whose hash with it weighs most. A member more or less, or a
// partition, changes little of the rest, so that views that differ a little collide little.
func (p *picture) match(slots []*slot) []*member {
	matched := make([]*member, 0, len(slots))
	for _, at := range slots {
		var best *member
		var most uint64
		for _, m := range p.members {
			if w := mix(m.hash ^ at.hash); m.room > 0 && (best == nil || w > most) {
				best, most = m, w
			}
		}
		if best == nil {
			break
		}
		best.room--
		matched = append(matched, best)
	}
	return matched
}

// hash is FNV-1a, the same in every process: all have to find the same.
func hash(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return h
}

// mix spreads every bit of x over all of the result (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
