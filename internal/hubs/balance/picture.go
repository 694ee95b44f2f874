package balance

import (
	"cmp"
	"slices"
	"strings"
)

// picture is the group as everyone works it out. Its methods go on with it in the order
// of Decide: what withdraw gives back and claim hands out is counted when steal looks.
type picture struct {
	members []*member // by id
	byID    map[string]*member
	slots   []*slot // by id
}

// member is a living instance.
type member struct {
	id   string
	hash uint64
	// count is what it owns, without what others have asked for and with what it has asked
	// for itself.
	count int
	// share is how many it should have.
	share int
	// room is how many it gets in this handing out.
	room int
}

// missing is how many it has too few; negative: too many.
func (m *member) missing() int { return m.share - m.count }

// slot is a partition with those who have to do with it, nil where nobody has.
type slot struct {
	Partition
	hash        uint64
	owner, next *member
	// withdrawn: next no longer wants it, but nobody else can know before it has said so.
	withdrawn bool
}

func newPicture(v View) *picture {
	p := &picture{byID: make(map[string]*member, len(v.Live)+1)}
	p.add(v.Self)
	for _, id := range v.Live {
		p.add(id)
	}
	for _, part := range v.Partitions {
		p.add(part.Owner) // whoever is said to own counts, whether it was listed or not
	}
	p.slots = make([]*slot, 0, len(v.Partitions))
	room := make([]slot, len(v.Partitions))
	for i, part := range v.Partitions {
		at := &room[i]
		*at = slot{Partition: part, hash: hash(part.ID), owner: p.byID[part.Owner], next: p.byID[part.Next]}
		if holder := cmp.Or(at.next, at.owner); holder != nil {
			holder.count++ // it counts for who asked for it, or else for its owner
		}
		p.slots = append(p.slots, at)
	}
	slices.SortFunc(p.members, func(a, b *member) int { return strings.Compare(a.id, b.id) })
	slices.SortFunc(p.slots, func(a, b *slot) int { return strings.Compare(a.ID, b.ID) })
	p.share()
	return p
}

func (p *picture) add(id string) {
	if id == "" || p.byID[id] != nil {
		return
	}
	m := &member{id: id, hash: hash(id)}
	p.byID[id] = m
	p.members = append(p.members, m)
}

// share says how many partitions each should have. The larger shares go to those that hold
// most: so the fewest move, and where counts differ by one at most, none.
func (p *picture) share() {
	byCount := slices.Clone(p.members)
	slices.SortStableFunc(byCount, func(a, b *member) int { return cmp.Compare(b.count, a.count) })
	floor, larger := len(p.slots)/len(p.members), len(p.slots)%len(p.members)
	for i, m := range byCount {
		m.share = floor
		if i < larger {
			m.share++
		}
	}
}

// withdraw takes back what was asked for in other times, and notes that have done their work.
func (p *picture) withdraw(self string) []string {
	var mine []string
	for _, at := range p.slots {
		if at.next == nil {
			continue
		}
		if done := at.next == at.owner; !done {
			// The asker has too many now, or would make the owner the poorer of the two.
			unwanted := at.next.missing() < 0 || at.owner != nil && at.next.count-at.owner.count >= 2
			if !unwanted {
				continue
			}
			at.withdrawn = true
			at.next.count--
			if at.owner != nil {
				at.owner.count++
			}
		}
		if at.next.id == self {
			mine = append(mine, at.ID)
		}
	}
	p.share()
	return mine
}

// claim hands out what is free, the most to those that have least. What was released for
// someone waits for them.
func (p *picture) claim(self string) []string {
	var free []*slot
	var mine []string
	for _, at := range p.slots {
		switch {
		case at.owner != nil || at.withdrawn:
		case at.next == nil:
			free = append(free, at)
		case at.next.id == self:
			mine = append(mine, at.ID)
		}
	}
	p.pour(len(free), len(free))
	for i, m := range p.match(free) {
		m.count++
		if m.id == self {
			mine = append(mine, free[i].ID)
		}
	}
	slices.Sort(mine)
	return mine
}

// steal takes from those that have too many for those that have too few: all, or one for each.
func (p *picture) steal(self string, greedy bool) (ask, take []string) {
	each := 1
	if greedy {
		each = len(p.slots)
	}
	surplus := p.surplus(p.pour(len(p.slots), each))
	for i, m := range p.match(surplus) {
		switch {
		case m.id != self:
		case surplus[i].Foreign:
			take = append(take, surplus[i].ID)
		default:
			ask = append(ask, surplus[i].ID)
		}
	}
	slices.Sort(ask)
	slices.Sort(take)
	return ask, take
}
