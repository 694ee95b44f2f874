package classic

import (
	"slices"
	"time"
)

// Stored is a group as it is kept.
type Stored struct {
	State      State    `json:"state"`
	Generation int32    `json:"generation"`
	Type       string   `json:"type,omitempty"`
	Protocol   string   `json:"protocol,omitempty"`
	Leader     string   `json:"leader,omitempty"`
	Members    []Member `json:"members,omitempty"`
}

// Stored gives what is to be kept of the group. While it prepares that is the generation before, with the
// members that there are now.
func (g *Group) Stored() Stored {
	s := Stored{State: g.state, Generation: g.generation, Type: g.kind, Protocol: g.protocol, Leader: g.leader}
	for _, m := range g.order {
		if !m.fresh {
			s.Members = append(s.Members, m.Member)
		}
	}
	if len(s.Members) == 0 {
		return Stored{State: Empty, Generation: g.generation, Type: g.kind}
	}
	return s
}

// Restore makes a group of what was kept. Its members have their session time-outs from now on, and as long to
// ask for what was not assigned yet as any.
func Restore(now time.Time, s Stored, initialDelay time.Duration) *Group {
	g := New(initialDelay)
	g.generation, g.kind = s.Generation, s.Type
	if len(s.Members) == 0 {
		return g
	}
	g.state, g.protocol, g.leader = s.State, s.Protocol, s.Leader
	for _, kept := range s.Members {
		m := &one{Member: kept, synced: s.State == Stable}
		m.topics, _ = check(Join{Session: m.Session, Type: s.Type, Protocols: m.Protocols})
		m.heard(now)
		g.members[m.ID], g.order = m, append(g.order, m)
		g.measure(m)
	}
	if g.state != Stable {
		g.deadline = now.Add(g.patience())
	}
	return g
}

// View is a group as operators and clients see it.
type View struct {
	State      State
	Generation int32
	Type       string
	Protocol   string
	Members    []MemberView
}

// MemberView is a member of it.
type MemberView struct {
	ID, Instance, Client, Host string
	// Metadata and Assignment are there while the group is stable.
	Metadata, Assignment []byte
}

// View gives the group as it is now.
func (g *Group) View() View {
	v := View{State: g.state, Generation: g.generation, Type: g.kind}
	if g.state == Stable {
		v.Protocol = g.protocol
	}
	for _, m := range g.order {
		shown := MemberView{ID: m.ID, Instance: m.Instance, Client: m.Client, Host: m.Host}
		if p := m.metadata(g.protocol); p != nil && g.state == Stable {
			shown.Metadata, shown.Assignment = p.Metadata, m.Assignment
		}
		v.Members = append(v.Members, shown)
	}
	return v
}

// Topics are those that members subscribe to, by name. Groups of other types than consumers have none.
func (g *Group) Topics() []string {
	var all []string
	for _, m := range g.order {
		all = append(all, m.topics...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TopicsOf are those that one member subscribes to; none where there is no such member.
func (g *Group) TopicsOf(id string) []string {
	if m := g.members[id]; m != nil {
		return m.topics
	}
	return nil
}
