package classic

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// State is where a group is between two generations. The names are Kafka's, which clients show.
type State string

// The states of a group.
const (
	Empty      State = "Empty"
	Preparing  State = "PreparingRebalance"
	Completing State = "CompletingRebalance"
	Stable     State = "Stable"
)

// Ticket stands for a request that waits for its answer. Who asks chooses it; it is not zero, and never used
// twice.
type Ticket uint64

// Answer is what a request is told at last.
type Answer struct {
	Ticket Ticket
	Join   Joined // of a Join
	Sync   Synced // of a Sync
	Err    error
}

// Effect is what an event brings about.
type Effect struct {
	Answers []Answer
	// Save: what Stored gives has changed, and has to be durable before any of the answers is given.
	Save bool
}

// Protocol is a way of assigning partitions that a member has, and what it has to say in it.
type Protocol struct {
	Name     string `json:"name"`
	Metadata []byte `json:"metadata,omitempty"`
}

// Member is a member as it is stored and shown.
type Member struct {
	ID string `json:"id"`
	// Instance is what a static member calls itself; empty: it is a dynamic one.
	Instance  string        `json:"instance,omitempty"`
	Client    string        `json:"client,omitempty"`
	Host      string        `json:"host,omitempty"`
	Session   time.Duration `json:"session"`
	Rebalance time.Duration `json:"rebalance"`
	// Protocols are in the order in which it prefers them.
	Protocols  []Protocol `json:"protocols"`
	Assignment []byte     `json:"assignment,omitempty"`
}

// one is a member, and what is known of it besides.
type one struct {
	Member
	topics []string // it subscribes to
	bytes  int      // it measures as it is stored
	named  int      // what topics takes
	// joining and syncing are what it waits for; zero: nothing.
	joining, syncing Ticket
	// fresh: it has not been in a generation yet. synced: it has asked for its assignment in this one.
	fresh, synced bool
	// expires is when it is gone, unless it is heard of or waits.
	expires time.Time
}

// Group is one group. Only its methods change it, one at a time.
type Group struct {
	delay time.Duration // a first generation waits for more members

	state      State
	generation int32
	kind       string // protocol type, also of those who were there last; empty where nobody ever was
	protocol   string // the one that all have; empty before the first generation
	leader     string
	members    map[string]*one
	order      []*one // in which they have joined
	// pending are ids that were given to new members, and when they are forgotten.
	pending map[string]time.Time
	bytes   int // of all members
	named   int // of all members

	// deadline is until when members may join, or ask for their assignment; zero: nobody is waited for.
	deadline time.Time
	// initial: it is the first generation, and the deadline is moved while members come, up to latest.
	initial bool
	latest  time.Time

	out Effect // of the event that is under way
}

// New makes a group without members. initialDelay is how long a first generation waits for more of them.
func New(initialDelay time.Duration) *Group {
	return &Group{delay: initialDelay, state: Empty, members: make(map[string]*one), pending: make(map[string]time.Time)}
}

// State is where the group is.
func (g *Group) State() State { return g.state }

// Generation is the number of the present one.
func (g *Group) Generation() int32 { return g.generation }

// Type is that of its members' protocols, or of those who were its members last; empty where nobody ever was.
func (g *Group) Type() string { return g.kind }

// Idle: nobody is in the group, and nobody is about to be.
func (g *Group) Idle() bool { return g.state == Empty && len(g.pending) == 0 }

// pendingBytes is counted for an id that was given to somebody who has yet to join with it.
const pendingBytes = 256

// Bytes is about what its members take, with those that were only given an id.
func (g *Group) Bytes() int { return g.bytes + g.named + pendingBytes*len(g.pending) }

// topicBytes is what the names of topics take that are kept beside what is stored.
func topicBytes(topics []string) (n int) {
	for _, name := range topics {
		n += 16 + len(name)
	}
	return n
}

// take gives what an event has brought about.
func (g *Group) take() Effect {
	out := g.out
	g.out = Effect{}
	return out
}

func (g *Group) answer(a Answer) { g.out.Answers = append(g.out.Answers, a) }

// release answers whatever a member waits for with an error.
func (g *Group) release(m *one, err error) {
	for _, t := range []*Ticket{&m.joining, &m.syncing} {
		if *t != 0 {
			g.answer(Answer{Ticket: *t, Err: err})
			*t = 0
		}
	}
}

// known finds a member by its id, and by its instance where it has one.
func (g *Group) known(id, instance string) (*one, error) {
	m := g.members[id]
	if instance != "" {
		switch m = g.instance(instance); {
		case m != nil && m.ID != id:
			return nil, member.ErrFenced
		}
	}
	if m == nil {
		return nil, member.ErrUnknown
	}
	return m, nil
}

// instance finds a static member; nil: there is none.
func (g *Group) instance(name string) *one {
	for _, m := range g.order {
		if name != "" && m.Instance == name {
			return m
		}
	}
	return nil
}

// heard: a member is there.
func (m *one) heard(now time.Time) { m.expires = now.Add(m.Session) }

// waits: it is kept, whatever the time.
func (m *one) waits() bool { return m.joining != 0 || m.syncing != 0 }

// measure counts what a member takes when it is stored.
func (g *Group) measure(m *one) {
	g.bytes -= m.bytes
	g.named -= m.named
	m.bytes, m.named = storedBytes(m.Member), topicBytes(m.topics)
	g.bytes += m.bytes
	g.named += m.named
}

func storedBytes(m Member) int {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return len(raw)
}

// remove takes a member out, and tells it so. What follows from it is removed's.
func (g *Group) remove(m *one) {
	g.release(m, member.ErrUnknown)
	delete(g.members, m.ID)
	g.order = slices.DeleteFunc(g.order, func(other *one) bool { return other == m })
	g.bytes -= m.bytes
	g.named -= m.named
	if g.leader == m.ID {
		g.leader = ""
	}
}

// removed goes on after members were taken out.
func (g *Group) removed(now time.Time) {
	if g.state == Preparing {
		g.tryComplete(now)
	} else if g.state != Empty {
		g.rebalance(now)
	}
}

// patience is how long members are waited for: the longest of their rebalance time-outs.
func (g *Group) patience() (longest time.Duration) {
	for _, m := range g.order {
		longest = max(longest, m.Rebalance)
	}
	return longest
}

// rebalance has all members join again. It is called with who brought it about among those that wait.
func (g *Group) rebalance(now time.Time) {
	switch g.state {
	case Empty:
		g.initial = g.delay > 0
		g.latest = now.Add(max(g.patience(), g.delay))
		g.deadline = now.Add(g.delay)
		if !g.initial {
			g.deadline = g.latest
		}
	case Preparing:
		if g.initial {
			if g.deadline = now.Add(g.delay); g.deadline.After(g.latest) {
				g.deadline = g.latest
			}
		}
	default:
		for _, m := range g.order {
			if m.syncing != 0 {
				g.answer(Answer{Ticket: m.syncing, Err: member.ErrRebalancing})
				m.syncing = 0
				m.heard(now)
			}
		}
		g.initial, g.deadline = false, now.Add(g.patience())
	}
	g.state = Preparing
	g.tryComplete(now)
}

// tryComplete begins a generation if nobody is waited for any more.
func (g *Group) tryComplete(now time.Time) {
	if g.state != Preparing || len(g.order) > 0 && (g.initial && now.Before(g.deadline) || len(g.pending) > 0) {
		return
	}
	if !slices.ContainsFunc(g.order, func(m *one) bool { return m.joining == 0 }) {
		g.complete(now)
	}
}

// complete begins a generation with those who have joined, and with the static members. Where only static
// ones are left that have not, there is nobody to lead it, and it waits on.
func (g *Group) complete(now time.Time) {
	for _, m := range slices.Clone(g.order) {
		if m.joining == 0 && m.Instance == "" {
			g.remove(m)
		}
	}
	g.initial = false
	if len(g.order) == 0 {
		g.out.Save = true
		g.state, g.generation, g.protocol, g.leader, g.deadline = Empty, next(g.generation), "", "", time.Time{}
		return
	}
	first := slices.IndexFunc(g.order, func(m *one) bool { return m.joining != 0 })
	if first < 0 {
		g.deadline = now.Add(g.patience())
		return
	}
	if m := g.members[g.leader]; m == nil || m.joining == 0 {
		g.leader = g.order[first].ID
	}
	g.out.Save = true
	g.state, g.generation, g.protocol, g.deadline = Completing, next(g.generation), g.choose(), now.Add(g.patience())
	for _, m := range g.order {
		m.Assignment, m.synced, m.fresh = nil, m.joining == 0, false
		g.measure(m)
	}
	for _, m := range g.order {
		if m.joining != 0 {
			g.answer(Answer{Ticket: m.joining, Join: g.joined(m)})
			m.joining = 0
			m.heard(now)
		}
	}
}

// next is the generation after one.
func next(generation int32) int32 { return max(generation+1, 1) } // it begins anew after the greatest

// choose gives the protocol that most members prefer of those that all have; of several the one that the
// first of them prefers. There is one: who has none in common with the others is not let in.
func (g *Group) choose() string {
	votes := make(map[string]int)
	for _, m := range g.order {
		for _, p := range m.Protocols {
			if g.haveAll(p.Name, nil) {
				votes[p.Name]++
				break
			}
		}
	}
	best := ""
	for _, p := range g.order[0].Protocols {
		if votes[p.Name] > votes[best] {
			best = p.Name
		}
	}
	return best
}

// haveAll: all members but one have a protocol.
func (g *Group) haveAll(name string, but *one) bool {
	for _, m := range g.order {
		if m != but && m.metadata(name) == nil {
			return false
		}
	}
	return true
}

// metadata is what a member has to say in a protocol; nil: it does not have it.
func (m *one) metadata(protocol string) *Protocol {
	for i := range m.Protocols {
		if m.Protocols[i].Name == protocol {
			return &m.Protocols[i]
		}
	}
	return nil
}
