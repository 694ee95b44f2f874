package classic

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// Sync is a member's request for its assignment; that of the leader has those of all.
type Sync struct {
	Member, Instance string
	Generation       int32
	// Type and Protocol are what the member thinks; empty: it does not say.
	Type, Protocol string
	Assignments    map[string][]byte // by member
}

// Synced is the answer to a Sync.
type Synced struct {
	Type, Protocol string
	Assignment     []byte
}

// Sync takes a member's request for its assignment. It is answered when the leader has assigned.
func (g *Group) Sync(now time.Time, t Ticket, r Sync) Effect {
	if err := g.sync(now, t, r); err != nil {
		g.answer(Answer{Ticket: t, Err: err})
	}
	return g.take()
}

func (g *Group) sync(now time.Time, t Ticket, r Sync) error {
	m, err := g.inGeneration(r.Member, r.Instance, r.Generation)
	switch {
	case err != nil:
		return err
	case r.Type != "" && r.Type != g.kind || r.Protocol != "" && r.Protocol != g.protocol:
		return fmt.Errorf("%w: this one uses %q of type %q", member.ErrProtocol, g.protocol, g.kind)
	case g.state == Preparing:
		m.heard(now)
		return member.ErrRebalancing
	}
	g.release(m, member.ErrRebalancing) // it has asked anew
	m.syncing, m.synced = t, true
	if g.state == Completing && m.ID == g.leader {
		if err := g.assign(r.Assignments); err != nil {
			m.syncing, m.synced = 0, false
			m.heard(now)
			return err
		}
		g.state, g.out.Save = Stable, true
	}
	if g.state == Stable {
		g.deliver(now)
	}
	return nil
}

// SyncGrowth is about how much more a group takes after a request.
func SyncGrowth(g *Group, r Sync) (bytes int) {
	if g.state == Completing && r.Member == g.leader {
		for _, m := range g.order {
			bytes += base64.StdEncoding.EncodedLen(len(r.Assignments[m.ID])) - base64.StdEncoding.EncodedLen(len(m.Assignment))
		}
	}
	return bytes
}

// assign takes the leader's assignments. Who is not in them gets an empty one.
func (g *Group) assign(all map[string][]byte) error {
	for _, m := range g.order {
		m.Assignment = all[m.ID]
		g.measure(m)
	}
	if g.bytes <= member.MaxBytes {
		return nil
	}
	for _, m := range g.order {
		m.Assignment = nil
		g.measure(m)
	}
	return fmt.Errorf("%w: the assignments are too large to be stored", member.ErrTooMany)
}

// deliver gives their assignments to all who have asked. When everybody has, nobody is waited for.
func (g *Group) deliver(now time.Time) {
	for _, m := range g.order {
		if m.syncing != 0 {
			g.answer(Answer{Ticket: m.syncing, Sync: Synced{Type: g.kind, Protocol: g.protocol, Assignment: m.Assignment}})
			m.syncing = 0
			m.heard(now)
		}
	}
	if !slices.ContainsFunc(g.order, func(m *one) bool { return !m.synced }) {
		g.deadline = time.Time{}
	}
}

// inGeneration finds a member that knows the present generation.
func (g *Group) inGeneration(id, instance string, generation int32) (*one, error) {
	m, err := g.known(id, instance)
	if err != nil {
		return nil, err
	}
	if generation != g.generation {
		return nil, fmt.Errorf("%w: it is in %d, not in %d", member.ErrGeneration, g.generation, generation)
	}
	return m, nil
}

// Heartbeat notes that a member is there. member.ErrRebalancing has it join again.
func (g *Group) Heartbeat(now time.Time, id, instance string, generation int32) error {
	m, err := g.inGeneration(id, instance, generation)
	if err != nil {
		return err
	}
	m.heard(now)
	if g.state == Preparing {
		return member.ErrRebalancing
	}
	return nil
}

// Commit judges whether somebody may commit offsets for the group: a member that knows its generation, or
// anybody, without id and generation, while the group has no members.
func (g *Group) Commit(now time.Time, id, instance string, generation int32) error {
	if generation < 0 && id == "" && instance == "" {
		if g.state != Empty {
			return fmt.Errorf("%w: offsets of a group with members are committed by these", member.ErrUnknown)
		}
		return nil
	}
	if g.state == Empty && id == "" {
		return member.ErrGeneration
	}
	m, err := g.inGeneration(id, instance, generation)
	if err != nil {
		return err
	}
	m.heard(now)
	if g.state == Completing {
		return member.ErrRebalancing
	}
	return nil
}
