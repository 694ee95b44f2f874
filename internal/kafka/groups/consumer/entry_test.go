package consumer

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

// midway is a group in the middle of everything.
func midway(t testing.TB) *world {
	w := newWorld(t, hub("orders", 5, 0), hub("bills", 2, 0))
	h := static(join("a", "orders", "bills"), "one")
	h.Rack, h.Client, h.Host = "r1", "client <é>", "10.0.0.1"
	w.say(h)
	w.say(matching("b", "ord.*"))
	w.say(beat("a", 1))
	w.say(join("c", "orders", "bills"))
	delete(w.c, "bills")
	w.g = w.g.Refresh(w.c)
	return w
}

func TestAStoredGroupIsTheSame(t *testing.T) { // K2
	for name, g := range map[string]*Group{"empty": new(Group), "in the middle of everything": midway(t).g} {
		t.Run(name, func(t *testing.T) {
			back := testkit.Value(Decode(g.Encode()))(t)
			testkit.Equal(t, string(back.Encode()), string(g.Encode()))
			testkit.Equal(t, back.Epoch, g.Epoch)
			testkit.Slices(t, back.Topics(), g.Topics())
			testkit.Equal(t, len(back.Members()), len(g.Members()))
			for _, m := range g.Members() {
				testkit.That(t, back.Member(m.ID).equal(m), "%s is as it was", m.ID)
			}
		})
	}
}

func TestAMemberGoesOnAfterARestart(t *testing.T) { // K2
	w := midway(t)
	w.g = testkit.Value(Decode(w.g.Encode()))(t)
	before := w.g
	a := w.say(static(beat("a", 1), "one"))
	testkit.Equal(t, a.Epoch, int32(1), "it has not given up what it was told to")
	testkit.Equal(t, w.g, before, "and nothing has to be stored")
	w.settle()
	testkit.Equal(t, w.g.State(), "Stable")
}

// crowd is a group of many members, all of which have something, give something up, and wait for something.
func crowd(n int) *Group {
	g := &Group{Epoch: 1, topics: []Topic{hub("orders", 1000, 0)}, members: map[string]*Member{}}
	subscription := &Subscription{Names: []string{"orders"}}
	for i := range n {
		id := fmt.Sprintf("4f1c0e0a-9a3e-4f3b-8f53-%012d", i)
		has, gives, gets := of("orders", int32(i)), of("gone", int32(i)), of("orders", int32(n-1-i))
		g.members[id] = &Member{ID: id, Client: "a-client-of-some-service", Host: "/10.20.30.40", Epoch: 1, Previous: 1,
			RebalanceTimeout: 5 * time.Minute, Subscription: subscription, Assigned: has, Revoking: gives, Target: gets}
	}
	return g
}

func TestAThousandMembersFitIntoAnEntry(t *testing.T) { // K6
	testkit.Check(t, crowd(member.MaxMembers).room())
}

func TestManyPartitionsFitIntoAnEntry(t *testing.T) { // K6
	var topics []Topic
	var names []string
	for i := range MaxPartitions / 1024 {
		topics = append(topics, hub(fmt.Sprint("h", i), 1024, 0))
		names = append(names, topics[i].Name)
	}
	w := newWorld(t, append(topics, hub("more", 1, 0))...)
	for i := range 7 { // who joins takes some of everybody's
		w.say(join(fmt.Sprint("m", i), names...))
	}
	testkit.That(t, len(w.g.Encode()) < maxJoinBytes, "it has %d bytes", len(w.g.Encode()))
	w.refused(join("x", append(names, "more")...), member.ErrTooMany)
}

func TestEntriesThatAreNoGroupsAreRefused(t *testing.T) { // K2
	for why, entry := range map[string]string{
		"no JSON":                  `{`,
		"an id that is none":       `{"topics":[{"id":"00"}]}`,
		"a long id":                `{"topics":[{"id":"000000000000000000000000000000000000"}]}`,
		"no such subscription":     `{"epoch":1,"members":[{"id":"a","sub":0}]}`,
		"a member twice":           `{"epoch":1,"subscriptions":[{}],"members":[{"id":"a"},{"id":"a"}]}`,
		"a member ahead":           `{"epoch":1,"subscriptions":[{}],"members":[{"id":"a","e":2}]}`,
		"an unknown assignor":      `{"epoch":1,"subscriptions":[{}],"members":[{"id":"a","by":"x"}]}`,
		"no such hub":              `{"epoch":1,"subscriptions":[{}],"members":[{"id":"a","has":"AAEA"}]}`,
		"more than there is":       `{"epoch":1,"topics":[{"id":"00000000000000000000000000000000"}],"subscriptions":[{}],"members":[{"id":"a","has":"AMgBAA=="}]}`,
		"a number without end":     `{"epoch":1,"topics":[{"id":"00000000000000000000000000000000"}],"subscriptions":[{}],"members":[{"id":"a","has":"AAH/////Dw=="}]}`,
		"a number that is cut off": `{"epoch":1,"topics":[{"id":"00000000000000000000000000000000"}],"subscriptions":[{}],"members":[{"id":"a","has":"AAH/"}]}`,
		"two owners":               `{"epoch":1,"topics":[{"id":"00000000000000000000000000000000"}],"subscriptions":[{}],"members":[{"id":"a","has":"AAIAAA=="},{"id":"b","gives":"AAEB"}]}`,
		"two who are to be owner":  `{"epoch":1,"topics":[{"id":"00000000000000000000000000000000"}],"subscriptions":[{}],"members":[{"id":"a","gets":"AAIAAA=="},{"id":"b","gets":"AAEB"}]}`,
	} {
		t.Run(why, func(t *testing.T) { testkit.ErrorIs(t, testkit.Err(Decode([]byte(entry))), ErrEntry) })
	}
}

// Whatever is decoded can be gone on with.
func FuzzDecode(f *testing.F) { // K6
	f.Add(new(Group).Encode())
	f.Add(midway(f).g.Encode())
	f.Fuzz(func(t *testing.T, entry []byte) {
		g, err := Decode(entry)
		if err != nil {
			return
		}
		again := testkit.Value(Decode(g.Encode()))(t)
		testkit.Equal(t, string(again.Encode()), string(g.Encode()))
		c := hubs(hub("orders", 3, 0))
		if next, _, err := g.Heartbeat(join("newcomer", "orders"), c); err == nil {
			testkit.Value(Decode(next.Encode()))(t)
		}
	})
}
