package classic

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// Join is the request of a client to be, or to stay, in a group.
type Join struct {
	// Member is its id; empty: it is new. NewID is the one that it gets then, and has to be a fresh one each
	// time.
	Member, NewID string
	// Instance is what a static member calls itself; empty: it is a dynamic one.
	Instance     string
	Client, Host string
	// Session is how long it may be silent, and Rebalance how long others wait for it.
	Session, Rebalance time.Duration
	// Type is that of its protocols, which are in the order in which it prefers them.
	Type      string
	Protocols []Protocol
	// TwoSteps: a new dynamic member is to join with the id that it is given first (KIP-394).
	TwoSteps bool
	// Skips: a static leader that comes back can be told to leave the assignments as they are (KIP-814).
	Skips bool
}

// Joined is the answer to a Join. With member.ErrIDRequired it has Member alone.
type Joined struct {
	Member     string
	Generation int32
	Type       string
	Protocol   string
	Leader     string
	// Members are for the leader alone, with what each has to say in the protocol.
	Members []JoinedMember
	// Skip: the leader leaves the assignments as they are.
	Skip bool
}

// JoinedMember is a member as the leader sees it.
type JoinedMember struct {
	ID, Instance string
	Metadata     []byte
}

// Join takes the request of a client to be in the group. It is answered when the next generation begins, or
// at once where nothing changes by it.
func (g *Group) Join(now time.Time, t Ticket, r Join) Effect {
	r = r.bounded()
	if err := g.join(now, t, r); err != nil {
		g.answer(Answer{Ticket: t, Join: Joined{Member: r.Member}, Err: err})
	}
	return g.take()
}

// bounded is the request as far as it is heeded.
func (r Join) bounded() Join {
	r.Client, r.Host = member.Short(r.Client), member.Short(r.Host)
	r.Rebalance = min(max(r.Rebalance, 0), member.MaxRebalance)
	if r.Rebalance == 0 {
		r.Rebalance = r.Session // as version 0 of the request has it
	}
	return r
}

func (g *Group) join(now time.Time, t Ticket, r Join) error {
	topics, err := check(r)
	if err != nil {
		return err
	}
	if _, given := g.pending[r.Member]; r.Member == "" || given {
		if m := g.instance(r.Instance); m != nil {
			return g.replace(now, t, m, r, topics)
		}
		if err := g.fits(r, nil); err != nil {
			return err
		}
		if !given && r.Instance == "" && r.TwoSteps {
			g.pending[r.NewID] = now.Add(r.Session)
			g.answer(Answer{Ticket: t, Join: Joined{Member: r.NewID}, Err: member.ErrIDRequired})
			return nil
		}
		delete(g.pending, r.Member)
		m := &one{Member: Member{ID: r.Member, Instance: r.Instance}, fresh: true}
		if !given {
			m.ID = r.NewID
		}
		g.members[m.ID], g.order = m, append(g.order, m)
		g.update(now, m, t, r, topics)
		g.rebalance(now)
		return nil
	}
	m, err := g.known(r.Member, r.Instance)
	if err != nil {
		return err
	}
	if err := g.fits(r, m); err != nil {
		return err
	}
	same := sameProtocols(m.Protocols, r.Protocols)
	switch {
	case g.state == Preparing:
		g.update(now, m, t, r, topics)
		g.tryComplete(now)
	case same && (g.state == Completing || m.ID != g.leader): // its answer was lost, or it did not know better
		m.heard(now)
		g.answer(Answer{Ticket: t, Join: g.joined(m)})
	default:
		g.update(now, m, t, r, topics)
		g.rebalance(now)
	}
	return nil
}

// check judges a request by itself, and gives what it subscribes to.
func check(r Join) (topics []string, err error) {
	switch {
	case r.Session < member.MinSession || r.Session > member.MaxSession:
		return nil, member.ErrSession
	case r.Type == "" || len(r.Protocols) == 0 || len(r.Protocols) > member.MaxProtocols:
		return nil, fmt.Errorf("%w: a member names 1 to %d", member.ErrProtocol, member.MaxProtocols)
	case len(r.Instance) > member.MaxIDBytes || len(r.Type) > member.MaxIDBytes || !utf8.ValidString(r.Instance+r.Type):
		return nil, fmt.Errorf("%w: names are text of up to %d bytes", member.ErrProtocol, member.MaxIDBytes)
	}
	said := 0
	for i, p := range r.Protocols {
		if said += len(p.Metadata); said > member.MaxBytes {
			return nil, member.ErrTooMany
		}
		named := func(other Protocol) bool { return other.Name == p.Name }
		if len(p.Name) > member.MaxIDBytes || !utf8.ValidString(p.Name) || slices.ContainsFunc(r.Protocols[:i], named) {
			return nil, fmt.Errorf("%w: each has a name of its own, which is text of up to %d bytes", member.ErrProtocol, member.MaxIDBytes)
		}
		if r.Type != member.ConsumerProtocol {
			continue
		}
		more, err := member.Topics(p.Metadata)
		if err != nil {
			return nil, err
		}
		topics = append(topics, more...)
	}
	slices.Sort(topics)
	if topics = slices.Compact(topics); len(topics) > member.MaxTopics {
		return nil, member.ErrTooMany
	}
	return topics, nil
}

// Topics says what a request subscribes to; an error where it makes no sense.
func (r Join) Topics() ([]string, error) { return check(r) }

// fits refuses whom the group has no room for, or nothing in common with. m is who asks; nil: somebody new.
func (g *Group) fits(r Join, m *one) error {
	_, given := g.pending[r.Member]
	if m == nil && !given && len(g.members)+len(g.pending) >= member.MaxMembers {
		return member.ErrTooMany
	}
	before := 0
	if m != nil {
		before = m.bytes
	}
	if g.bytes-before+r.bytes() > member.MaxBytes {
		return member.ErrTooMany
	}
	if len(g.order) == 0 || len(g.order) == 1 && m != nil {
		return nil
	}
	if r.Type != g.kind || !slices.ContainsFunc(r.Protocols, func(p Protocol) bool { return g.haveAll(p.Name, m) }) {
		return member.ErrProtocol
	}
	return nil
}

// bytes is what a member measures that says so.
func (r Join) bytes() int {
	return storedBytes(Member{
		ID: r.NewID + r.Member, Instance: r.Instance, Client: r.Client, Host: r.Host, Session: r.Session, Rebalance: r.Rebalance, Protocols: r.Protocols,
	})
}

// JoinGrowth is about how much more a group takes after a request. A first step counts as what is to follow it.
func JoinGrowth(g *Group, r Join) int {
	r = r.bounded()
	m := g.members[r.Member]
	if m == nil {
		m = g.instance(r.Instance)
	}
	topics, _ := check(r) // what is refused grows nothing
	if m == nil {
		return r.bytes() + topicBytes(topics)
	}
	r.Member, r.NewID = m.ID, ""
	before := m.Member
	before.Assignment = nil // it goes with the generation
	return r.bytes() + topicBytes(topics) - storedBytes(before) - m.named
}

// update notes what a member has to say now, and that it waits for the next generation.
func (g *Group) update(now time.Time, m *one, t Ticket, r Join, topics []string) {
	g.release(m, member.ErrRebalancing) // it has asked anew
	m.Client, m.Host, m.Session, m.Rebalance, m.Protocols, m.topics, m.joining = r.Client, r.Host, r.Session, r.Rebalance, r.Protocols, topics, t
	m.heard(now)
	g.kind = r.Type
	g.measure(m)
}

// replace puts a client in the place of a static member of its name (KIP-345): it has been started again, and
// keeps what was assigned to it, unless it wants something else now. The other one hears so when it next asks.
func (g *Group) replace(now time.Time, t Ticket, m *one, r Join, topics []string) error {
	if err := g.fits(r, m); err != nil {
		return err
	}
	g.release(m, member.ErrFenced)
	before, unchanged := m.ID, slices.Equal(m.topics, topics) && (len(topics) > 0 || sameProtocols(m.Protocols, r.Protocols))
	delete(g.members, before)
	delete(g.pending, r.Member)
	m.ID = r.NewID
	g.members[m.ID] = m
	led := g.leader == before
	if led {
		g.leader = m.ID
	}
	g.update(now, m, t, r, topics)
	switch {
	case g.state == Preparing:
		g.tryComplete(now)
	case g.state == Stable && unchanged && g.choose() == g.protocol:
		m.joining, m.synced, g.out.Save = 0, true, true
		answer := g.joined(m)
		if answer.Skip = led && r.Skips; led && !r.Skips {
			answer.Leader, answer.Members = before, nil // else it would assign anew, and others would not hear of it
		}
		g.answer(Answer{Ticket: t, Join: answer})
	default:
		g.rebalance(now)
	}
	return nil
}

// joined is what a member is told of the present generation.
func (g *Group) joined(m *one) Joined {
	answer := Joined{Member: m.ID, Generation: g.generation, Type: g.kind, Protocol: g.protocol, Leader: g.leader}
	if m.ID == g.leader {
		for _, other := range g.order {
			said := JoinedMember{ID: other.ID, Instance: other.Instance}
			if p := other.metadata(g.protocol); p != nil {
				said.Metadata = p.Metadata
			}
			answer.Members = append(answer.Members, said)
		}
	}
	return answer
}

func sameProtocols(a, b []Protocol) bool {
	return slices.EqualFunc(a, b, func(x, y Protocol) bool { return x.Name == y.Name && bytes.Equal(x.Metadata, y.Metadata) })
}
