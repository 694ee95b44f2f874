package consumer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// given is a problem in short: hubs with their partitions, and members with what they want and have.
func given(topics []Topic, members ...candidate) problem {
	p := problem{partitions: map[TopicID]int32{}, members: members}
	for _, t := range topics {
		p.partitions[t.ID] = t.Partitions
	}
	return p
}

func wants(id string, held Set, names ...string) candidate {
	c := candidate{id: id, order: id, held: held}
	for _, name := range names {
		c.topics = append(c.topics, hub(name, 0, 0).ID)
	}
	return c
}

func shown(sets map[string]Set) string {
	var b strings.Builder
	for _, id := range slices.Sorted(keysOf(sets)) {
		if len(sets[id]) > 0 {
			fmt.Fprintf(&b, "%s: %s", id, show(sets[id]))
		}
	}
	return strings.TrimSpace(b.String())
}

func TestRangeGivesRunsThatMatchAcrossHubs(t *testing.T) { // K2
	topics := []Topic{hub("x", 5, 0), hub("y", 5, 0), hub("z", 1, 0)}
	in := given(topics, wants("a", nil, "x", "y"), wants("b", of("x", 0), "x", "y", "z"))
	testkit.Equal(t, shown(byRange(in)), "a: x/0 x/1 x/2 y/0 y/1 y/2 b: x/3 x/4 y/3 y/4 z/0")
}

func TestUniform(t *testing.T) { // K2
	x4, y3 := []Topic{hub("x", 4, 0)}, []Topic{hub("x", 3, 0), hub("y", 3, 0)}
	for name, c := range map[string]struct {
		in   problem
		want string
	}{
		"shares out what is new":                 {given(x4, wants("a", nil, "x"), wants("b", nil, "x")), "a: x/0 x/2 b: x/1 x/3"},
		"moves no more than it has to":           {given(x4, wants("a", of("x", 0, 1, 2, 3), "x"), wants("b", nil, "x")), "a: x/0 x/1 b: x/2 x/3"},
		"leaves one more with who has it":        {given(y3[:1], wants("a", of("x", 1), "x"), wants("b", of("x", 0, 2), "x")), "a: x/1 b: x/0 x/2"},
		"gives nothing to who is one too many":   {given(x4[:1], wants("a", of("x", 0, 1), "x"), wants("b", of("x", 2), "x"), wants("c", of("x", 3), "x"), wants("d", nil, "x"), wants("e", nil, "x")), "a: x/0 b: x/2 c: x/3 d: x/1"},
		"takes away what is not wanted any more": {given(y3, wants("a", of("x", 0, 1, 2), "y"), wants("b", nil, "x")), "a: y/0 y/1 y/2 b: x/0 x/1 x/2"},
		"forgets partitions that are gone":       {given(y3[:1], wants("a", of("x", 2, 3).Or(of("gone", 1)), "x")), "a: x/0 x/1 x/2"},
		"evens out over hubs with other readers": {given(y3, wants("a", nil, "x"), wants("b", nil, "x", "y")), "a: x/0 x/1 x/2 b: y/0 y/1 y/2"},
		"gives nothing where nothing is wanted":  {given(nil, wants("a", nil)), ""},
		"counts what members have of other hubs": {given([]Topic{hub("x", 1, 0), hub("y", 3, 0)}, wants("a", of("x", 0), "x", "y"), wants("b", nil, "y")), "a: x/0 y/0 b: y/1 y/2"},
	} {
		t.Run(name, func(t *testing.T) { testkit.Equal(t, shown(uniform(c.in)), c.want) })
	}
}

// drawProblem is any problem; with alike all members want the same.
func drawProblem(t *rapid.T, alike bool) problem {
	var topics []Topic
	var names []string
	for i := range rapid.IntRange(1, 5).Draw(t, "hubs") {
		one := hub(fmt.Sprint("h", i), rapid.IntRange(1, 12).Draw(t, "partitions"), 0)
		topics, names = append(topics, one), append(names, one.Name)
	}
	var members []candidate
	for i := range rapid.IntRange(1, 8).Draw(t, "members") {
		wanted := names
		if !alike {
			wanted = slices.DeleteFunc(slices.Clone(names), func(string) bool { return rapid.Bool().Draw(t, "without") })
		}
		members = append(members, wants(fmt.Sprint("m", i), nil, wanted...))
	}
	p := given(topics, members...)
	for _, one := range topics {
		for n := range one.Partitions {
			if owner := rapid.IntRange(-2, len(members)-1).Draw(t, "holder"); owner >= 0 {
				p.members[owner].held = p.members[owner].held.Or(of(one.Name, n))
			}
		}
	}
	return p
}

// complete: everything that somebody wants has one owner who does, and nobody has anything else.
func complete(t *rapid.T, p problem, sets map[string]Set) {
	owners := map[Partition]string{}
	wanted := p.subscribers()
	for i, m := range p.members {
		for _, one := range sets[m.id] {
			if owners[one] != "" {
				t.Fatalf("%v is given to %s and %s", one, owners[one], m.id)
			}
			owners[one] = m.id
			if !slices.Contains(wanted[one.Topic], i) || one.Number >= p.partitions[one.Topic] {
				t.Fatalf("%s is given %v", m.id, one)
			}
		}
	}
	n := 0
	for topic := range wanted {
		n += int(p.partitions[topic])
	}
	if len(owners) != n {
		t.Fatalf("%d of %d partitions are given", len(owners), n)
	}
}

func TestEverythingWantedIsGivenToOneWhoWantsIt(t *testing.T) { // K2
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.Bool().Draw(t, "alike"))
		for _, assign := range assignors {
			complete(t, p, assign(p))
		}
	})
}

func TestUniformMovesNoMoreThanBalanceNeeds(t *testing.T) { // K2
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, true)
		sets := uniform(p)
		total, moved := 0, 0
		for _, m := range p.members {
			total += len(sets[m.id])
			moved += len(m.held.Without(sets[m.id]))
		}
		// Of what members have only that goes which is beyond an equal share, and of those shares that are one
		// larger as many as there are go to who has as much.
		share, larger := total/len(p.members), total%len(p.members)
		needed := 0
		for _, m := range p.members {
			if n := len(sets[m.id]); n < share || n > share+1 {
				t.Fatalf("%s has %d of %d partitions among %d", m.id, n, total, len(p.members))
			}
			if surplus := len(m.held) - share; surplus > 0 {
				if needed += surplus; larger > 0 {
					larger--
					needed--
				}
			}
		}
		if moved != needed {
			t.Fatalf("%d partitions are taken away, %d would do", moved, needed)
		}
	})
}

func TestUniformIsAsEvenAsSubscriptionsAllow(t *testing.T) { // K2
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, false)
		sets := uniform(p)
		for topic, subscribers := range p.subscribers() {
			for _, from := range subscribers {
				if !slices.ContainsFunc(sets[p.members[from].id], func(one Partition) bool { return one.Topic == topic }) {
					continue
				}
				for _, to := range subscribers {
					if has, other := len(sets[p.members[from].id]), len(sets[p.members[to].id]); has > other+1 {
						t.Fatalf("%s has %d partitions, and one that %s wants, who has %d", p.members[from].id, has, p.members[to].id, other)
					}
				}
			}
		}
		for i := range p.members {
			p.members[i].held = sets[p.members[i].id]
		}
		if again := uniform(p); shown(again) != shown(sets) {
			t.Fatalf("done again it differs: %s, then %s", shown(sets), shown(again))
		}
	})
}

func BenchmarkUniform(b *testing.B) {
	var topics []Topic
	var names []string
	for i := range 100 {
		topics = append(topics, hub(fmt.Sprint("h", i), 100, 0))
		names = append(names, topics[i].Name)
	}
	var members []candidate
	for i := range 1000 {
		members = append(members, wants(fmt.Sprintf("m%03d", i), nil, names[:50+i%50]...))
	}
	p := given(topics, members...)
	for b.Loop() {
		uniform(p)
	}
}
