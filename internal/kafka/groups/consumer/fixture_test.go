package consumer

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// catalog is hubs by name.
type catalog map[string]Topic

func (c catalog) Topic(name string) (Topic, bool) {
	t, ok := c[strings.ToLower(name)]
	return t, ok
}

func (c catalog) Match(expression *regexp.Regexp) (names []string) {
	for name := range c {
		if expression.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

func hubs(topics ...Topic) catalog {
	c := catalog{}
	for _, t := range topics {
		c[t.Name] = t
	}
	return c
}

// world is a group, and what happens to it.
type world struct {
	t testkit.T
	g *Group
	c catalog
}

func newWorld(t testing.TB, topics ...Topic) *world {
	return &world{t: t, g: new(Group), c: hubs(topics...)}
}

// say sends a heartbeat that has to succeed.
func (w *world) say(h Heartbeat) Answer {
	next, answer, err := w.g.Heartbeat(h, w.c)
	testkit.Must(w.t, err, h.Member)
	w.g = next
	return answer
}

// refused sends one that has to fail, and to change nothing.
func (w *world) refused(h Heartbeat, want error) {
	next, _, err := w.g.Heartbeat(h, w.c)
	testkit.ErrorIs(w.t, err, want, h.Member)
	testkit.Equal(w.t, next, w.g, "the group after a refusal")
}

const minute = time.Minute

func join(member string, names ...string) Heartbeat {
	return Heartbeat{Member: member, RebalanceTimeout: minute, Names: append([]string{}, names...), Reported: true}
}

func beat(member string, epoch int32) Heartbeat {
	return Heartbeat{Member: member, Epoch: epoch, RebalanceTimeout: -1}
}

func owning(member string, epoch int32, owned Set) Heartbeat {
	h := beat(member, epoch)
	h.Owned, h.Reported = owned, true
	return h
}

// static is a heartbeat of a static member.
func static(h Heartbeat, instance string) Heartbeat {
	h.Instance = instance
	return h
}

// assigned checks an answer with an assignment.
func assigned(t testkit.T, a Answer, epoch int32, want Set) {
	testkit.Equal(t, a.Epoch, epoch, "epoch of", a.Member)
	testkit.That(t, a.Assigns, "%s is told its assignment", a.Member)
	testkit.Equal(t, show(a.Assignment), show(want), "assignment of", a.Member)
}

// unassigned checks an answer without one.
func unassigned(t testkit.T, a Answer, epoch int32) {
	testkit.Equal(t, a.Epoch, epoch, "epoch of", a.Member)
	testkit.That(t, !a.Assigns, "%s is told nothing", a.Member)
}

// settle has all members give up what they were told to, and heartbeat until nothing changes.
func (w *world) settle() {
	owned := map[string]Set{}
	epochs := map[string]int32{}
	for _, m := range w.g.Members() {
		owned[m.ID], epochs[m.ID] = m.Assigned, m.Epoch
	}
	for range 100 {
		before := w.g
		for _, id := range slices.Sorted(keysOf(owned)) {
			a := w.say(owning(id, epochs[id], owned[id]))
			epochs[id] = a.Epoch
			if a.Assigns {
				owned[id] = a.Assignment
			}
		}
		if w.g == before {
			return
		}
	}
	w.t.Fatal("the group does not come to rest")
}
