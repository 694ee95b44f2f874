package consumer

import (
	"cmp"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// Member is one of a group. It is never changed in place.
type Member struct {
	ID, Instance, Rack, Client, Host string
	// Epoch is what it was told last; EpochStaticLeave while it is away. Previous is the one before, which it
	// still has if an answer was lost.
	Epoch, Previous  int32
	RebalanceTimeout time.Duration
	Assignor         string // empty: whatever the group has
	Subscription     *Subscription
	// Target is what it is to have, Assigned what it was told to consume, and Revoking what it was told to
	// give up and has not said that it did.
	Target, Assigned, Revoking Set
}

// order is what assignors sort members by: a static member that is back under another id stays where it
// was.
func (m *Member) order() string {
	if m.Instance != "" {
		return m.Instance
	}
	return m.ID
}

// described is the member with what it says about itself.
func (m Member) described(h Heartbeat) Member {
	m.ID = h.Member
	m.Rack, m.Client, m.Host = cmp.Or(h.Rack, m.Rack), cmp.Or(h.Client, m.Client), cmp.Or(h.Host, m.Host)
	if h.RebalanceTimeout >= 0 {
		m.RebalanceTimeout = min(h.RebalanceTimeout, member.MaxRebalance) // clients may say the longest there is
	}
	if h.Assignor != nil {
		m.Assignor = *h.Assignor
	}
	return m
}

// equal: there is nothing of it that would have to be stored again.
func (m *Member) equal(other *Member) bool {
	return m.ID == other.ID && m.Instance == other.Instance && m.Rack == other.Rack && m.Client == other.Client && m.Host == other.Host &&
		m.Epoch == other.Epoch && m.Previous == other.Previous && m.RebalanceTimeout == other.RebalanceTimeout && m.Assignor == other.Assignor &&
		m.Subscription.equal(other.Subscription) &&
		m.Target.Equal(other.Target) && m.Assigned.Equal(other.Assigned) && m.Revoking.Equal(other.Revoking)
}

// Trails: the member was of that epoch until it was told another one, of which it may not have heard yet.
func (m *Member) Trails(epoch int32) bool { return epoch > 0 && epoch == m.Previous }

// settled: the member has what the target of that epoch says.
func (m *Member) settled(epoch int32) bool {
	return m.Epoch == epoch && len(m.Revoking) == 0 && m.Assigned.Equal(m.Target)
}

// reconcile takes a member as far towards its target as it can go by what it reports. taken says what of
// some partitions others have, or have not given up yet.
//
// First it gives up what is not its own any more, and keeps its epoch until it has: whoever waits for
// these partitions sees that they are still held, whatever became of the answer. Then it has the group's
// epoch, and is given what is free; for the rest it asks again with each heartbeat.
func (m Member) reconcile(epoch int32, owned Set, reported bool, taken func(Set) Set) Member {
	released := func(s Set) bool { return reported && len(s.And(owned)) == 0 }
	if len(m.Revoking) > 0 {
		if !released(m.Revoking) {
			return m
		}
		m.Revoking = nil
	}
	if m.settled(epoch) {
		return m
	}
	surplus := m.Assigned.Without(m.Target)
	m.Assigned = m.Assigned.Without(surplus)
	if len(surplus) > 0 && !released(surplus) {
		m.Revoking = surplus
		return m
	}
	if m.Epoch != epoch {
		m.Previous, m.Epoch = m.Epoch, epoch
	}
	if missing := m.Target.Without(m.Assigned); len(missing) > 0 {
		m.Assigned = m.Assigned.Or(missing.Without(taken(missing)))
	}
	return m
}
