package consumer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// MaxPartitions is how many partitions the members of a group subscribe to at most, in all. With what is
// known of the members it has to fit into one entry of the store, also while partitions are exchanged.
const MaxPartitions = 32 << 10

// Group is a consumer group at one moment. It never changes; what happens to it gives the next one. The
// zero Group is one that nobody has joined yet.
type Group struct {
	// Epoch rises with each change of what the target is made of; the target is that of this epoch.
	Epoch int32
	// topics are the hubs that somebody subscribes to, by id, as they were when the target was made.
	topics []Topic
	// members are never changed in place, and nor is the map.
	members map[string]*Member
}

// Heartbeat gives what becomes of the group by a member's heartbeat, and what the member hears. Next is g
// itself if there is nothing to store. After an error nothing has changed.
func (g *Group) Heartbeat(h Heartbeat, c Catalog) (next *Group, answer Answer, err error) {
	if err := h.Check(); err != nil {
		return g, Answer{}, err
	}
	if h.Epoch == EpochLeave || h.Epoch == EpochStaticLeave {
		return g.leave(h, c)
	}
	if h.Epoch == EpochJoin { // whoever joins has nothing, or has just given it up
		h.Owned, h.Reported = nil, true
	}
	before, err := g.caller(h)
	if err != nil {
		return g, Answer{}, err
	}
	m := before.described(h)
	if m.Subscription, err = subscribe(before.Subscription, h, c); err != nil {
		return g, Answer{}, err
	}
	next = g
	if joined := g.members[before.ID] == nil; joined || m.Subscription != before.Subscription || m.Assignor != before.Assignor {
		next = g.with(before, m).retarget(c)
		if err := next.room(); err != nil {
			return g, Answer{}, err
		}
		m = *next.members[m.ID]
	}
	m = m.reconcile(next.Epoch, h.Owned, h.Reported, next.takenFrom(before.ID, m.ID))
	if next != g || !m.equal(before) {
		next = next.with(before, m)
	}
	lost := h.Epoch != before.Epoch // it has not heard what it was told last
	assigns := h.whole() || lost || !m.Assigned.Equal(before.Assigned)
	return next, Answer{Member: m.ID, Epoch: m.Epoch, Assignment: m.Assigned, Assigns: assigns}, nil
}

// caller finds the member that a heartbeat is from: for one that joins a new one, or the static member
// whose place it takes, as it was under its former id.
func (g *Group) caller(h Heartbeat) (*Member, error) {
	m, static := g.members[h.Member], g.instance(h.Instance)
	switch {
	case h.Epoch != EpochJoin:
		return m, g.recognise(m, static, h)
	case static != nil && static != m:
		if static.Epoch != EpochStaticLeave {
			return nil, fmt.Errorf("instance %q: %w", h.Instance, ErrUnreleasedInstance)
		}
		return static, nil
	case m != nil && m.Instance != h.Instance:
		return nil, fmt.Errorf("%w: member %q has another group.instance.id", ErrInvalid, h.Member)
	case m != nil:
		return m, nil
	}
	return &Member{ID: h.Member, Instance: h.Instance, Subscription: &Subscription{}}, nil
}

// recognise checks that a heartbeat is that of a member which is where it says.
func (g *Group) recognise(m, static *Member, h Heartbeat) error {
	switch {
	case h.Instance != "" && static != nil && static != m:
		return fmt.Errorf("instance %q: %w", h.Instance, member.ErrFenced)
	case m == nil, h.Instance != "" && static == nil:
		return fmt.Errorf("member %q: %w", h.Member, member.ErrUnknown)
	case h.Epoch < 0: // it leaves, from wherever it is
		return nil
	case h.Epoch == m.Epoch:
		return nil
	case h.Epoch == m.Previous && m.Epoch > 0 && h.Reported && h.Owned.Within(m.Assigned):
		return nil
	}
	return fmt.Errorf("member %q has epoch %d, and says %d: %w", h.Member, m.Epoch, h.Epoch, ErrFencedEpoch)
}

// leave removes a member. A static one that says it will be back stays, with all that it has, and nobody
// else is given it until the session has ended.
func (g *Group) leave(h Heartbeat, c Catalog) (*Group, Answer, error) {
	m := g.members[h.Member]
	if err := g.recognise(m, g.instance(h.Instance), h); err != nil {
		return g, Answer{}, err
	}
	answer := Answer{Member: m.ID, Epoch: h.Epoch}
	if h.Epoch == EpochLeave {
		return g.Remove([]string{m.ID}, c), answer, nil
	}
	if m.Epoch == EpochStaticLeave {
		return g, answer, nil
	}
	away := *m
	away.Epoch, away.Revoking = EpochStaticLeave, nil
	return g.with(m, away), answer, nil
}

// Remove takes members out, because they left or were not heard of in time. Their partitions are free.
func (g *Group) Remove(ids []string, c Catalog) *Group {
	left := &Group{Epoch: g.Epoch, members: maps.Clone(g.members)}
	for _, id := range ids {
		delete(left.members, id)
	}
	if len(left.members) == len(g.members) {
		return g
	}
	return left.retarget(c)
}

// Refresh makes a new target if hubs that somebody subscribes to were made, deleted, or made anew.
// Expressions are another matter: each is resolved with the rights of its member, by its heartbeat.
func (g *Group) Refresh(c Catalog) *Group {
	if topics, _ := g.wanted(c); slices.Equal(topics, g.topics) {
		return g
	}
	return g.retarget(c)
}

// retarget raises the epoch and says anew who is to have what.
func (g *Group) retarget(c Catalog) *Group {
	next := &Group{Epoch: g.Epoch + 1, members: make(map[string]*Member, len(g.members))}
	var wanted map[string][]TopicID
	next.topics, wanted = g.wanted(c)
	in := problem{partitions: make(map[TopicID]int32, len(next.topics))}
	for _, t := range next.topics {
		in.partitions[t.ID] = t.Partitions
	}
	for _, m := range g.Members() {
		in.members = append(in.members, candidate{id: m.ID, order: m.order(), topics: wanted[m.ID], held: m.Target})
	}
	slices.SortStableFunc(in.members, func(a, b candidate) int { return strings.Compare(a.order, b.order) })
	targets := assignors[g.Assignor()](in)
	for id, m := range g.members {
		if target := targets[id]; !target.Equal(m.Target) {
			m = new(*m)
			m.Target = target
		}
		next.members[id] = m
	}
	return next
}

// wanted are the hubs that the group subscribes to, and those of each member, both by id.
func (g *Group) wanted(c Catalog) (all []Topic, of map[string][]TopicID) {
	of = make(map[string][]TopicID, len(g.members))
	resolved := make(map[*Subscription][]TopicID) // most members of a group want the same
	for id, m := range g.members {
		ids, known := resolved[m.Subscription]
		if !known {
			for _, t := range m.Subscription.topics(c) {
				all, ids = append(all, t), append(ids, t.ID)
			}
			resolved[m.Subscription] = ids
		}
		of[id] = ids
	}
	return distinct(all), of
}

// with is the group with a member in another's place, or its own.
func (g *Group) with(before *Member, m Member) *Group {
	next := &Group{Epoch: g.Epoch, topics: g.topics, members: make(map[string]*Member, len(g.members)+1)}
	maps.Copy(next.members, g.members)
	delete(next.members, before.ID)
	m.Subscription = g.shared(m.Subscription)
	next.members[m.ID] = &m
	return next
}

// shared gives the subscription of a member that wants the same, so that it is kept, and resolved, once.
func (g *Group) shared(s *Subscription) *Subscription {
	for _, m := range g.members {
		if m.Subscription == s || m.Subscription.equal(s) {
			return m.Subscription
		}
	}
	return s
}

// room refuses what would make a group larger than it may be.
func (g *Group) room() error {
	partitions := 0
	for _, t := range g.topics {
		partitions += int(t.Partitions)
	}
	switch n := len(g.members); {
	case n > member.MaxMembers:
		return fmt.Errorf("%w: it would have %d members", member.ErrTooMany, n)
	case partitions > MaxPartitions:
		return fmt.Errorf("%w: %d partitions are subscribed to, at most %d are allowed", member.ErrTooMany, partitions, MaxPartitions)
	}
	if n := len(g.Encode()); n > maxJoinBytes {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", member.ErrTooMany, n, maxJoinBytes)
	}
	return nil
}

// takenFrom says which partitions members other than these have, or have not given up yet.
func (g *Group) takenFrom(ids ...string) func(Set) Set {
	return func(wanted Set) Set {
		var taken []Partition // made a set once: with each member it would be sorted again
		for _, m := range g.members {
			if !slices.Contains(ids, m.ID) {
				taken = append(append(taken, wanted.And(m.Assigned)...), wanted.And(m.Revoking)...)
			}
		}
		return SetOf(taken)
	}
}

// instance finds a static member.
func (g *Group) instance(id string) *Member {
	if id != "" {
		for _, m := range g.members {
			if m.Instance == id {
				return m
			}
		}
	}
	return nil
}

// CheckCommit tells whether somebody may commit offsets. While there are no members everybody may who is
// none: tools move the offsets of groups that are at rest.
func (g *Group) CheckCommit(id string, epoch int32) error {
	if id == "" && epoch < 0 && len(g.members) == 0 {
		return nil
	}
	m := g.members[id]
	switch {
	case m == nil:
		return fmt.Errorf("member %q: %w", id, member.ErrUnknown)
	case epoch != m.Epoch:
		return fmt.Errorf("member %q has epoch %d, and says %d: %w", id, m.Epoch, epoch, ErrStaleEpoch)
	}
	return nil
}

// CheckFetch tells whether somebody may read offsets: everybody, but a member only as what it is, since
// it is about to go on from them.
func (g *Group) CheckFetch(id string, epoch int32) error {
	if id == "" && epoch < 0 {
		return nil
	}
	return g.CheckCommit(id, epoch)
}

// Member finds a member; nil if there is none.
func (g *Group) Member(id string) *Member { return g.members[id] }

// Len is how many members there are.
func (g *Group) Len() int { return len(g.members) }

// Members are all members, by id.
func (g *Group) Members() []*Member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *Member) int { return strings.Compare(a.ID, b.ID) })
}

// Topics are the hubs that somebody subscribes to, by id.
func (g *Group) Topics() []Topic { return g.topics }

// Assignor is the one that most members ask for; of several the first by name, and uniform if nobody
// asks.
func (g *Group) Assignor() string {
	votes := make(map[string]int)
	for _, m := range g.members {
		if m.Assignor != "" {
			votes[m.Assignor]++
		}
	}
	chosen := Uniform
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] > votes[chosen] {
			chosen = name
		}
	}
	return chosen
}

// State is a group's state as clients know it.
func (g *Group) State() string {
	if len(g.members) == 0 {
		return "Empty"
	}
	for _, m := range g.members {
		if !m.settled(g.Epoch) && m.Epoch != EpochStaticLeave {
			return "Reconciling"
		}
	}
	return "Stable"
}

// Bytes is about what the group takes in memory.
func (g *Group) Bytes() (n int) {
	subscriptions := make(map[*Subscription]bool)
	for _, m := range g.members {
		n += memberBytes + len(m.ID) + len(m.Instance) + len(m.Rack) + len(m.Client) + len(m.Host)
		n += partitionBytes * (len(m.Target) + len(m.Assigned) + len(m.Revoking))
		if subscriptions[m.Subscription] {
			continue
		}
		subscriptions[m.Subscription] = true
		n += len(m.Subscription.Expression)
		for _, name := range slices.Concat(m.Subscription.Names, m.Subscription.Matched) {
			n += nameBytes + len(name)
		}
	}
	return n + memberBytes*len(g.topics)
}

// What is counted for what is kept: it is more than that, rather than less.
const (
	memberBytes    = 512
	partitionBytes = 24
	nameBytes      = 32
)
