package classic

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// actor is a client that does what clients do, and sometimes does not.
type actor struct {
	id, instance string
	topics       []string
	joining      Ticket
	syncing      Ticket
	joined       Joined
	// holds is the generation whose assignment it has; zero: none.
	holds int32
	given string
}

// K2: whatever members do, and however often the coordinator is started anew: in one generation nobody is given what
// is another's or what it did not ask for, generations rise, each ticket is answered once, and who is left alone
// comes to rest.
func TestAnyStory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRoom(t, rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(rt, "delay"))
		var actors []*actor
		highest := int32(0)
		for range rapid.IntRange(5, 120).Draw(rt, "steps") {
			if len(actors) < 6 && rapid.IntRange(0, 3).Draw(rt, "come") == 0 {
				a := &actor{topics: rapid.SampledFrom([][]string{{"orders"}, {"bills"}, {"bills", "orders"}}).Draw(rt, "topics")}
				if rapid.IntRange(0, 2).Draw(rt, "static") == 0 {
					a.instance = fmt.Sprint("i", rapid.IntRange(0, 2).Draw(rt, "instance"))
				}
				actors = append(actors, a)
			}
			if len(actors) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(actors)-1).Draw(rt, "who")
			r.step(rt, actors[i], rapid.IntRange(0, 9).Draw(rt, "what"))
			if rapid.IntRange(0, 25).Draw(rt, "dies") == 0 { // without a word
				actors = slices.Delete(actors, i, i+1)
			}
			if rapid.IntRange(0, 40).Draw(rt, "restart") == 0 {
				r.restart(actors)
			}
			r.hear(actors)
			testkit.MustThat(t, r.group.Generation() >= highest, "generation %d after %d", r.group.Generation(), highest)
			highest = r.group.Generation()
			r.check(actors)
		}
		r.settle(actors)
	})
}

// step has an actor do something.
func (r *room) step(rt *rapid.T, a *actor, what int) {
	r.t.Helper()
	j := want(a.topics...).static(a.instance).as(a.id)
	switch {
	case a.joining != 0 || a.syncing != 0:
		if what == 0 { // its connection ends
			r.take(r.group.Abandon(r.now, max(a.joining, a.syncing)))
			a.joining, a.syncing = 0, 0
		}
		r.pass(time.Duration(what) * 700 * time.Millisecond)
	case what == 0 && a.id != "":
		_, e := r.group.Leave(r.now, []Leaver{{a.id, a.instance}})
		r.take(e)
		*a = actor{topics: a.topics}
	case what == 1 || a.id == "" || a.joined.Generation == 0:
		j.TwoSteps = rapid.Bool().Draw(rt, "two steps")
		a.holds = 0
		a.joining = r.join(j)
	case what == 2 && a.instance != "": // it is started again, and has forgotten who it was
		a.id, a.joined, a.holds = "", Joined{}, 0
		a.joining = r.join(j.as(""))
	case what < 4:
		a.syncing = r.sync(a.joined)
	case what < 8:
		if r.group.Heartbeat(r.now, a.id, a.instance, a.joined.Generation) != nil {
			a.joined, a.holds = Joined{}, 0
		}
	default:
		r.pass(time.Duration(what) * time.Second)
	}
}

// restart gives the group to another coordinator, which knows what was stored.
func (r *room) restart(actors []*actor) {
	r.group = Restore(r.now, r.stored, r.group.delay)
	for _, a := range actors {
		a.joining, a.syncing = 0, 0
	}
}

// hear gives actors the answers that have come.
func (r *room) hear(actors []*actor) {
	for _, a := range actors {
		if answer, there := r.answers[a.joining]; there {
			a.joining = 0
			switch {
			case answer.Join.Member != "" && answer.Err != nil: // it is to join with that id, or its own is not known
				if answer.Join.Member != a.id {
					a.id = answer.Join.Member
				} else {
					a.id, a.joined = "", Joined{}
				}
			case answer.Err != nil:
				a.id, a.joined = "", Joined{}
			default:
				a.id, a.joined = answer.Join.Member, answer.Join
			}
		}
		if answer, there := r.answers[a.syncing]; there {
			a.syncing = 0
			if answer.Err != nil {
				a.joined, a.holds = Joined{}, 0
			} else {
				a.holds, a.given = a.joined.Generation, string(answer.Sync.Assignment)
			}
		}
	}
}

// check holds what actors have against each other.
func (r *room) check(actors []*actor) {
	r.t.Helper()
	owners := map[string]*actor{}
	for _, a := range actors {
		if a.holds == 0 || a.given == "" || r.group.members[a.id] == nil || a.holds != r.group.Generation() {
			continue
		}
		key := fmt.Sprint(a.holds, " ", a.given)
		testkit.MustThat(r.t, owners[key] == nil, "%q of generation %d is given to two", a.given, a.holds)
		owners[key] = a
		if a.instance == "" { // a static one may have what its predecessor was given
			testkit.MustEqual(r.t, a.given, "for "+a.id, "what was given to %s", a.id)
		}
	}
	testkit.MustThat(r.t, len(r.group.members) == len(r.group.order), "%d members, %d in order", len(r.group.members), len(r.group.order))
	bytes := 0
	for _, m := range r.group.order {
		bytes += storedBytes(m.Member) + topicBytes(m.topics)
	}
	testkit.MustEqual(r.t, r.group.Bytes(), bytes+pendingBytes*len(r.group.pending), "bytes")
}

// settle has all actors do what they should until nothing changes, and then the group is stable with all of them, or
// empty without any.
func (r *room) settle(actors []*actor) {
	r.t.Helper()
	instances := map[string]bool{}
	actors = slices.DeleteFunc(actors, func(a *actor) bool { // of several with one instance the first goes on
		twice := a.instance != "" && instances[a.instance]
		instances[a.instance] = true
		return twice
	})
	for range 200 {
		for _, a := range actors {
			switch {
			case a.joining != 0 || a.syncing != 0:
			case a.id == "" || a.joined.Generation == 0:
				a.joining = r.join(want(a.topics...).static(a.instance).as(a.id))
			case a.holds != a.joined.Generation:
				a.syncing = r.sync(a.joined)
			case r.group.Heartbeat(r.now, a.id, a.instance, a.joined.Generation) != nil:
				a.joined, a.holds = Joined{}, 0
			}
			r.hear(actors)
		}
		r.pass(time.Second)
		r.hear(actors)
	}
	if len(actors) == 0 {
		testkit.MustEqual(r.t, r.group.State(), Empty, "without anybody")
		return
	}
	testkit.MustEqual(r.t, r.group.State(), Stable, "with %d members", len(actors))
	testkit.MustEqual(r.t, len(r.group.order), len(actors), "members")
	r.check(actors)
}
