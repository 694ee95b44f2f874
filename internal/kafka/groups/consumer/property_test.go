package consumer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// client is a member as it sees itself, which is not always as the coordinator does.
type client struct {
	id, instance string
	epoch        int32
	names        []string
	owned        Set
	// giving is what it was told to give up, and still consumes.
	giving Set
	// said is what it last reported; what is the same it need not report again.
	said Set
	// unheard: the last answer was lost, so that it says everything next time.
	unheard bool
	// stopped: its process was killed; it owns nothing, and nobody is told.
	stopped bool
}

// play is a group under random clients. A partition that a client consumes is in its owned or giving.
type play struct {
	g         *Group
	c         catalog
	clients   []*client
	deadlines *Deadlines
	now       time.Time
	born      int
	epochs    map[string]int32 // the highest that each member was told
}

var playNames = []string{"h0", "h1", "h2"}

func (p *play) draw(t *rapid.T) *client {
	if len(p.clients) == 0 {
		t.Skip("nobody is there")
	}
	return rapid.SampledFrom(p.clients).Draw(t, "client")
}

func drawNames(t *rapid.T) []string {
	return slices.DeleteFunc(slices.Clone(playNames), func(string) bool { return rapid.IntRange(0, 2).Draw(t, "without") == 0 })
}

// beat sends a client's heartbeat, the answer of which may be lost.
func (p *play) beat(t *rapid.T, c *client, lost bool) {
	h := Heartbeat{Member: c.id, Epoch: c.epoch, Instance: c.instance, RebalanceTimeout: -1}
	if c.epoch == EpochJoin || c.unheard {
		h.RebalanceTimeout, h.Names = minute, append([]string{}, c.names...)
	}
	if all := c.owned.Or(c.giving); h.RebalanceTimeout >= 0 || !all.Equal(c.said) || rapid.Bool().Draw(t, "reported") {
		h.Owned, h.Reported, c.said = all, true, all
	}
	next, answer, err := p.g.Heartbeat(h, p.c)
	p.advance(t, next)
	if err == nil {
		p.deadlines.Heard(c.id, p.now)
	}
	switch {
	case lost:
		c.unheard = true
	case errors.Is(err, member.ErrUnknown), errors.Is(err, ErrFencedEpoch):
		c.epoch, c.owned, c.giving, c.unheard = EpochJoin, nil, nil, false
	case errors.Is(err, ErrUnreleasedInstance): // comes again
	case err != nil:
		t.Fatalf("%s is refused: %v", c.id, err)
	default:
		if answer.Epoch < p.epochs[c.id] {
			t.Fatalf("%s is told epoch %d after %d", c.id, answer.Epoch, p.epochs[c.id])
		}
		p.epochs[c.id], c.epoch, c.unheard = answer.Epoch, answer.Epoch, false
		if answer.Assigns {
			c.giving = c.giving.Or(c.owned.Without(answer.Assignment)).Without(answer.Assignment)
			c.owned = answer.Assignment
		}
	}
}

// advance goes on with the next state of the group.
func (p *play) advance(t *rapid.T, next *Group) {
	if next.Epoch < p.g.Epoch {
		t.Fatalf("the group's epoch falls from %d to %d", p.g.Epoch, next.Epoch)
	}
	if next != p.g && string(next.Encode()) == string(p.g.Encode()) {
		t.Fatal("a state that is the same is to be stored")
	}
	p.g = next
	p.deadlines.Follow(p.g, p.now)
}

// actions are what can happen.
func (p *play) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"join": func(t *rapid.T) {
			if len(p.clients) >= 6 {
				t.Skip("enough")
			}
			p.born++
			c := &client{id: fmt.Sprint("m", p.born), names: drawNames(t)}
			if rapid.Bool().Draw(t, "static") {
				c.instance = fmt.Sprint("i", rapid.IntRange(0, 3).Draw(t, "instance"))
				if slices.ContainsFunc(p.clients, func(o *client) bool { return o.instance == c.instance && !o.stopped }) {
					t.Skip("one process for each instance")
				}
			}
			p.clients = append(p.clients, c)
			p.beat(t, c, rapid.Bool().Draw(t, "lost"))
		},
		"heartbeat":        func(t *rapid.T) { p.living(t, func(c *client) { p.beat(t, c, false) }) },
		"heartbeat, lost":  func(t *rapid.T) { p.living(t, func(c *client) { p.beat(t, c, true) }) },
		"give up":          func(t *rapid.T) { p.draw(t).giving = nil },
		"change of mind":   func(t *rapid.T) { p.living(t, func(c *client) { c.names, c.unheard = drawNames(t), true }) },
		"kill":             func(t *rapid.T) { c := p.draw(t); c.stopped, c.owned, c.giving = true, nil, nil },
		"leave":            func(t *rapid.T) { p.living(t, func(c *client) { p.leave(t, c, EpochLeave) }) },
		"leave for a time": func(t *rapid.T) { p.living(t, func(c *client) { p.leave(t, c, EpochStaticLeave) }) },
		"hubs change": func(t *rapid.T) {
			name := rapid.SampledFrom(playNames).Draw(t, "hub")
			if _, there := p.c[name]; there && rapid.Bool().Draw(t, "deleted") {
				delete(p.c, name)
			} else if !there {
				p.born++
				p.c[name] = hub(name, rapid.IntRange(1, 5).Draw(t, "partitions"), p.born)
			}
			p.advance(t, p.g.Refresh(p.c))
		},
		"time": func(t *rapid.T) {
			p.now = p.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second)
			due := p.deadlines.Due(p.now)
			for _, c := range p.clients { // whoever is removed for its time has stopped by itself: clients count too
				if slices.Contains(due, c.id) {
					c.owned, c.giving = nil, nil
				}
			}
			p.advance(t, p.g.Remove(due, p.c))
		},
		"restart": func(t *rapid.T) {
			back, err := Decode(p.g.Encode())
			if err != nil {
				t.Fatal(err)
			}
			p.g, p.deadlines = back, NewDeadlines(45*time.Second)
			p.deadlines.Follow(p.g, p.now)
		},
		"": p.invariants,
	}
}

func (p *play) living(t *rapid.T, do func(*client)) {
	if c := p.draw(t); !c.stopped {
		do(c)
	}
}

func (p *play) leave(t *rapid.T, c *client, epoch int32) {
	if epoch == EpochStaticLeave && c.instance == "" {
		t.Skip("a dynamic member")
	}
	next, _, err := p.g.Heartbeat(Heartbeat{Member: c.id, Instance: c.instance, Epoch: epoch, RebalanceTimeout: -1}, p.c)
	if err != nil && !errors.Is(err, member.ErrUnknown) && !errors.Is(err, member.ErrFenced) {
		t.Fatal(err)
	}
	p.advance(t, next)
	p.clients = slices.DeleteFunc(p.clients, func(o *client) bool { return o == c })
}

// invariants hold at every moment.
func (p *play) invariants(t *rapid.T) {
	consumed := map[Partition]string{}
	for _, c := range p.clients {
		for _, one := range c.owned.Or(c.giving) {
			if other := consumed[one]; other != "" {
				t.Fatalf("%s/%d is consumed by %s and %s", one.Topic[:2], one.Number, other, c.id)
			}
			consumed[one] = c.id
		}
	}
	held := map[Partition]string{}
	for _, m := range p.g.Members() {
		if m.Epoch > p.g.Epoch {
			t.Fatalf("%s has epoch %d, the group %d", m.ID, m.Epoch, p.g.Epoch)
		}
		for _, one := range m.Assigned.Or(m.Revoking) {
			if other := held[one]; other != "" {
				t.Fatalf("%s/%d is assigned to %s and %s", one.Topic[:2], one.Number, other, m.ID)
			}
			held[one] = m.ID
		}
		for _, one := range m.Target {
			name := string(one.Topic[:2])
			if !slices.Contains(m.Subscription.Names, name) || p.c[name].ID != one.Topic || one.Number >= p.c[name].Partitions {
				t.Fatalf("%s is to have %s/%d", m.ID, name, one.Number)
			}
		}
	}
}

// rest lets everybody heartbeat until nothing changes, and then all that is subscribed to is consumed.
func (p *play) rest(t *rapid.T) {
	p.clients = slices.DeleteFunc(p.clients, func(c *client) bool { return c.stopped })
	gone := slices.DeleteFunc(p.g.Members(), func(m *Member) bool {
		return m.Epoch != EpochStaticLeave && slices.ContainsFunc(p.clients, func(c *client) bool { return c.id == m.ID })
	})
	for _, m := range gone {
		p.advance(t, p.g.Remove([]string{m.ID}, p.c))
	}
	for range 50 {
		for _, c := range p.clients {
			c.giving = nil
			p.beat(t, c, false)
			p.invariants(t)
		}
	}
	if state := p.g.State(); len(p.clients) > 0 && state != "Stable" {
		t.Fatalf("the group is %s", state)
	}
	for name, one := range p.c {
		if !slices.ContainsFunc(p.clients, func(c *client) bool { return slices.Contains(c.names, name) }) {
			continue
		}
		for n := range one.Partitions {
			if !slices.ContainsFunc(p.clients, func(c *client) bool { return slices.Contains(c.owned, Partition{one.ID, n}) }) {
				t.Fatalf("%s/%d is consumed by nobody", name, n)
			}
		}
	}
}

func TestWhateverHappensAPartitionHasOneConsumer(t *testing.T) { // K2
	rapid.Check(t, func(t *rapid.T) {
		p := &play{g: new(Group), c: hubs(hub("h0", 3, 0), hub("h1", 1, 0)), deadlines: NewDeadlines(45 * time.Second), now: noon, epochs: map[string]int32{}}
		t.Repeat(p.actions())
		p.rest(t)
	})
}
