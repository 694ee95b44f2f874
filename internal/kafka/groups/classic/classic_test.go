package classic

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K2: the first member leads, hears of all, assigns, and each gets what is its own.
func TestAGroupBecomesStable(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders"), want("orders"), want("bills"))
	testkit.Equal(t, all[0].Generation, int32(3), "generation")
	for _, j := range all {
		testkit.Equal(t, j.Leader, all[0].Member, "leader")
		testkit.Equal(t, j.Protocol, "range", "protocol")
		testkit.Equal(t, len(j.Members) > 0, j.Member == j.Leader, "whether %s hears of the others", j.Member)
		testkit.Must(t, r.group.Heartbeat(r.now, j.Member, "", j.Generation))
	}
	testkit.Slices(t, r.group.Topics(), []string{"bills", "orders"}, "topics")
	testkit.Slices(t, r.group.TopicsOf(all[2].Member), []string{"bills"}, "topics of one")
}

// K2: a new member is given an id first, and joins with it (KIP-394). Ids that nobody uses are forgotten.
func TestTwoSteps(t *testing.T) {
	r := newRoom(t, 0)
	two := want("orders")
	two.TwoSteps = true
	first := r.join(two)
	r.refused(first, member.ErrIDRequired)
	id := r.answers[first].Join.Member
	testkit.Equal(t, r.group.State(), Empty, "nobody is in it yet")
	testkit.Equal(t, r.joined(r.join(two.as(id))).Member, id, "member")
	r.refused(r.join(two.as("nobody")), member.ErrUnknown)

	flood := newRoom(t, 0)
	for range member.MaxMembers {
		flood.refused(flood.join(two), member.ErrIDRequired)
	}
	flood.refused(flood.join(two), member.ErrTooMany)
	testkit.That(t, !flood.group.Idle(), "it is forgotten while somebody is about to join")
	flood.pass(two.Session)
	testkit.That(t, flood.group.Idle(), "ids are kept for ever")
	flood.refused(flood.join(two), member.ErrIDRequired)
}

// K2: a first generation waits for more members, longer with each that comes, but not for ever.
func TestInitialDelay(t *testing.T) {
	r := newRoom(t, 3*time.Second)
	first := r.join(want("orders"))
	r.pass(2 * time.Second)
	second := r.join(want("orders"))
	r.pass(2 * time.Second)
	r.waits(first, second)
	r.pass(time.Second)
	testkit.Equal(t, len(r.joined(first).Members), 2, "members of the first generation")
	testkit.Equal(t, r.joined(second).Generation, int32(1), "generation")

	crowd := newRoom(t, 3*time.Second)
	first = crowd.join(want("orders"))
	began := crowd.now
	for range 40 {
		crowd.join(want("orders"))
		crowd.pass(2 * time.Second)
	}
	_, answered := crowd.answers[first]
	testkit.That(t, answered, "it waits for more after %v", crowd.now.Sub(began))
}

// K2: whose client says nothing for its session time-out is gone, and the others are told to join again.
func TestAMemberFallsSilent(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders"), want("orders"))
	for range 3 {
		r.pass(6 * time.Second)
		err := r.group.Heartbeat(r.now, all[0].Member, "", all[0].Generation)
		if err != nil {
			testkit.MustErrorIs(t, err, member.ErrRebalancing)
		}
	}
	testkit.Equal(t, r.members(), all[0].Member, "members")
	again := r.joined(r.join(want("orders").as(all[0].Member)))
	testkit.Equal(t, again.Generation, all[0].Generation+1, "generation")
	testkit.ErrorIs(t, r.group.Heartbeat(r.now, all[1].Member, "", all[1].Generation), member.ErrUnknown)
}

// K2: the leader dies before it has assigned. The others wait no longer than its session, and one of them leads.
func TestTheLeaderDiesBeforeItAssigns(t *testing.T) {
	r := newRoom(t, 0)
	first := r.joined(r.join(want("orders")))
	second := r.join(want("orders"))
	led := r.joined(r.join(want("orders").as(first.Member)))
	follower := r.sync(r.joined(second))
	r.waits(follower)
	r.pass(10 * time.Second)
	r.refused(follower, member.ErrRebalancing)
	again := r.joined(r.join(want("orders").as(r.joined(second).Member)))
	testkit.Equal(t, again.Leader, again.Member, "leader")
	testkit.Equal(t, again.Generation, led.Generation+1, "generation")
	testkit.Equal(t, r.members(), again.Member, "members")
}

// K2: who does not join again within the rebalance time-out is left behind, although its heart beats.
func TestASlowMemberIsLeftBehind(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders"), want("orders"))
	third := r.join(want("orders"))
	rejoined := r.join(want("orders").as(all[0].Member))
	for range 11 {
		r.waits(third, rejoined)
		r.pass(5 * time.Second)
		testkit.ErrorIs(t, r.group.Heartbeat(r.now, all[1].Member, "", all[1].Generation), member.ErrRebalancing)
	}
	r.pass(5 * time.Second)
	testkit.Equal(t, len(r.joined(rejoined).Members), 2, "members of the new generation")
	testkit.ErrorIs(t, r.group.Heartbeat(r.now, all[1].Member, "", all[1].Generation), member.ErrUnknown)
}

// K2: who joins and never asks for its assignment is removed when the time for it is over.
func TestAMemberThatNeverSyncs(t *testing.T) {
	r := newRoom(t, 0)
	long := want("orders")
	long.Session, long.Rebalance = 30*time.Second, 20*time.Second
	first := r.joined(r.join(long))
	second := r.join(long)
	led := r.joined(r.join(long.as(first.Member)))
	testkit.Equal(t, r.assigned(r.sync(led)), "for "+led.Member)
	r.pass(19 * time.Second)
	testkit.Equal(t, r.group.State(), Stable)
	testkit.Must(t, r.group.Heartbeat(r.now, led.Member, "", led.Generation))
	r.pass(time.Second)
	testkit.Equal(t, r.group.State(), Preparing)
	testkit.ErrorIs(t, r.group.Heartbeat(r.now, r.joined(second).Member, "", led.Generation), member.ErrUnknown)
}

// K2: a member whose connection ends while it waits to be let in for the first time is gone at once; others have
// their session.
func TestAMemberDiesInJoin(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders"), want("orders"))
	fresh := r.join(want("orders"))
	r.take(r.group.Abandon(r.now, fresh))
	testkit.Equal(t, r.members(), all[0].Member+" "+all[1].Member, "members")
	known := r.join(want("orders").as(all[0].Member))
	r.take(r.group.Abandon(r.now, known))
	other := r.join(want("orders").as(all[1].Member))
	r.pass(9 * time.Second)
	r.waits(fresh, known, other)
	r.pass(time.Second)
	testkit.Equal(t, len(r.joined(other).Members), 1, "members that are left")
}

// K2: a static member that comes back within its session has what it had, and nobody is disturbed (KIP-345).
func TestAStaticMemberReturns(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders").static("a"), want("orders").static("b"))
	saves := r.saves
	back := r.joined(r.join(want("orders").static("b")))
	testkit.That(t, back.Member != all[1].Member, "it has the id of the one before")
	testkit.Equal(t, back.Generation, all[1].Generation, "generation")
	testkit.Equal(t, back.Leader, all[0].Member, "leader")
	testkit.Equal(t, r.saves, saves+1, "times that it was stored")
	testkit.Equal(t, r.assigned(r.sync(back)), "for "+all[1].Member)
	testkit.Must(t, r.group.Heartbeat(r.now, all[0].Member, "a", all[0].Generation))
	testkit.ErrorIs(t, r.group.Heartbeat(r.now, all[1].Member, "b", all[1].Generation), member.ErrFenced)
	testkit.ErrorIs(t, r.group.Commit(r.now, all[1].Member, "b", all[1].Generation), member.ErrFenced)
	r.refused(r.join(want("orders").static("b").as(all[1].Member)), member.ErrFenced)
	r.refused(r.join(want("orders").static("c").as(all[1].Member)), member.ErrUnknown)
}

// K2: a leader that comes back is told to leave the assignments as they are (KIP-814), or, by an older client, that
// another leads, so that it does not assign what nobody would hear of.
func TestAStaticLeaderReturns(t *testing.T) {
	for _, skips := range []bool{true, false} {
		r := newRoom(t, 0)
		all := r.stable(want("orders").static("a"), want("orders").static("b"))
		j := want("orders").static("a")
		j.Skips = skips
		back := r.joined(r.join(j))
		testkit.Equal(t, back.Skip, skips, "it skips")
		testkit.Equal(t, back.Leader == back.Member, skips, "it leads")
		testkit.Equal(t, len(back.Members), map[bool]int{true: 2}[skips], "members that it hears of")
		testkit.Equal(t, r.assigned(r.sync(Joined{Member: back.Member, Generation: back.Generation})), "for "+all[0].Member)
		testkit.Equal(t, r.group.State(), Stable)
	}
}

// K2: a static member that wants other topics when it comes back has the group rebalance; one that does not come back
// keeps its place until its session ends, over rebalances too.
func TestAStaticMemberChangesOrStaysAway(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders").static("a"), want("orders").static("b"))
	changed := r.join(want("bills").static("b"))
	r.waits(changed)
	testkit.ErrorIs(t, r.group.Heartbeat(r.now, all[0].Member, "a", all[0].Generation), member.ErrRebalancing)

	r = newRoom(t, 0)
	long := want("orders").static("b")
	long.Session = 5 * time.Minute
	all = r.stable(want("orders").static("a"), long)
	third := r.join(want("orders"))
	first := r.join(want("orders").static("a").as(all[0].Member))
	r.pass(time.Minute)
	testkit.Equal(t, len(r.joined(first).Members), 3, "members with the one that stays away")
	r.joined(third)
	led, followed := r.sync(r.joined(first)), r.sync(r.joined(third))
	testkit.Equal(t, r.assigned(led), "for "+all[0].Member)
	r.assigned(followed)
	back := r.joined(r.join(long))
	testkit.Equal(t, r.assigned(r.sync(back)), "for "+all[1].Member)
}

// K2: while two members use one instance id, the later one counts, also when the other waits.
func TestAnInstanceInUseTwice(t *testing.T) {
	r := newRoom(t, 3*time.Second)
	first := r.join(want("orders").static("a"))
	second := r.join(want("orders").static("a"))
	r.refused(first, member.ErrFenced)
	r.pass(3 * time.Second)
	testkit.Equal(t, len(r.joined(second).Members), 1, "members")
}

// K2: members choose the protocol that all have and most prefer; who has none in common is not let in.
func TestProtocols(t *testing.T) {
	r := newRoom(t, 3*time.Second)
	a := r.join(want("orders").protocols("range", "sticky", "odd"))
	r.join(want("orders").protocols("sticky", "range"))
	r.join(want("orders").protocols("sticky", "range"))
	r.refused(r.join(want("orders").protocols("odd")), member.ErrProtocol)
	other := want("orders").protocols("range")
	other.Type = "connect"
	r.refused(r.join(other), member.ErrProtocol)
	r.pass(3 * time.Second)
	testkit.Equal(t, r.joined(a).Protocol, "sticky")

	for what, j := range map[string]func(*Join){
		"without protocols":                func(j *Join) { j.Protocols = nil },
		"without a type":                   func(j *Join) { j.Type = "" },
		"with too many protocols":          func(j *Join) { j.Protocols = make([]Protocol, member.MaxProtocols+1) },
		"with one protocol twice":          func(j *Join) { j.Protocols = append(j.Protocols, j.Protocols[0]) },
		"with a subscription that is none": func(j *Join) { j.Protocols = []Protocol{{"range", []byte{1}}} },
		"with a name that is no text":      func(j *Join) { j.Instance = "\xff" },
	} {
		bad := want("orders")
		j(&bad)
		_, err := bad.Topics()
		testkit.ErrorIs(t, err, member.ErrProtocol, what)
		r.refused(r.join(bad), member.ErrProtocol)
	}
	for _, session := range []time.Duration{0, time.Second, time.Hour} {
		bad := want("orders")
		bad.Session = session
		r.refused(r.join(bad), member.ErrSession)
	}
}

// K2: cooperative rebalancing is two generations: members say what they own, and give up what goes to others.
func TestTwoGenerationsInARow(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders"), want("orders"))
	owned := want("orders")
	owned.Protocols = []Protocol{{"range", append(slices.Clone(owned.Protocols[0].Metadata), "owns less"...)}}
	again := r.join(owned.as(all[1].Member)) // what it has to say has changed
	led := r.joined(r.join(want("orders").as(all[0].Member)))
	testkit.Equal(t, led.Generation, all[0].Generation+1, "generation")
	at := slices.IndexFunc(led.Members, func(m JoinedMember) bool { return m.ID == all[1].Member })
	testkit.Slices(t, led.Members[at].Metadata, owned.Protocols[0].Metadata, "what the leader hears")
	r.sync(r.joined(again))
	r.sync(led)
	testkit.Equal(t, r.group.State(), Stable)
	same := r.joined(r.join(owned.as(all[1].Member)))
	testkit.Equal(t, same.Generation, led.Generation, "the generation of who joins again with nothing new")
	lead := r.join(want("orders").as(all[0].Member))
	r.waits(lead) // by which a leader has all others join, as when a hub has changed
	testkit.Equal(t, r.group.State(), Preparing)
}

// K2: whose answer was lost asks again, and hears the same.
func TestAnswersThatWereLost(t *testing.T) {
	r := newRoom(t, 0)
	first := r.joined(r.join(want("orders")))
	again := r.joined(r.join(want("orders").as(first.Member)))
	testkit.Deep(t, again, first, "what it hears the second time")
	waiting := newRoom(t, 3*time.Second)
	one := waiting.join(want("orders"))
	id := waiting.group.View().Members[0].ID
	two := waiting.join(want("orders").as(id))
	waiting.refused(one, member.ErrRebalancing)
	waiting.waits(two)
	r.sync(first)
	testkit.Equal(t, r.assigned(r.sync(first)), "for "+first.Member)
}

// K2: commits are taken from members of the generation, and from anybody without one while nobody is in the group.
func TestWhoMayCommit(t *testing.T) {
	r := newRoom(t, 0)
	testkit.Must(t, r.group.Commit(r.now, "", "", -1), "without members")
	testkit.ErrorIs(t, r.group.Commit(r.now, "", "", 1), member.ErrGeneration)
	testkit.ErrorIs(t, r.group.Commit(r.now, "m", "", 1), member.ErrUnknown)
	first := r.joined(r.join(want("orders")))
	testkit.ErrorIs(t, r.group.Commit(r.now, first.Member, "", first.Generation), member.ErrRebalancing, "before it has its assignment")
	r.sync(first)
	testkit.Must(t, r.group.Commit(r.now, first.Member, "", first.Generation))
	testkit.ErrorIs(t, r.group.Commit(r.now, first.Member, "", first.Generation-1), member.ErrGeneration)
	testkit.ErrorIs(t, r.group.Commit(r.now, "nobody", "", first.Generation), member.ErrUnknown)
	testkit.ErrorIs(t, r.group.Commit(r.now, "", "", -1), member.ErrUnknown, "without a generation, while there are members")
	r.join(want("orders"))
	testkit.Must(t, r.group.Commit(r.now, first.Member, "", first.Generation), "while others join: it gives up its partitions then")
}

// K2: who leaves is gone at once; with the last one the group is empty, and its generation has ended.
func TestLeaving(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders").static("a"), want("orders"), want("orders"))
	leave := func(who ...Leaver) []error {
		errs, e := r.group.Leave(r.now, who)
		r.take(e)
		return errs
	}
	errs := leave(Leaver{Instance: "a"}, Leaver{Member: "nobody"}, Leaver{Member: all[1].Member, Instance: "x"}, Leaver{Instance: "x"}, Leaver{})
	testkit.Check(t, errs[0])
	for _, err := range errs[1:] {
		testkit.ErrorIs(t, err, member.ErrUnknown)
	}
	waiting := r.join(want("orders").as(all[1].Member))
	testkit.Check(t, leave(Leaver{Member: all[2].Member})[0])
	testkit.Equal(t, len(r.joined(waiting).Members), 1, "members that are left")
	before := r.group.Generation()
	testkit.Check(t, leave(Leaver{Member: all[1].Member})[0])
	testkit.Equal(t, r.group.State(), Empty)
	testkit.Equal(t, r.group.Generation(), before+1, "generation")
	testkit.That(t, r.group.Idle() && r.group.Bytes() == 0 && r.group.Next().IsZero(), "something is left of it")
	testkit.Equal(t, r.group.View().Type, member.ConsumerProtocol, "the type that its members had")
	r.group = Restore(r.now, r.group.Stored(), 0)
	testkit.Equal(t, r.group.View().Type, member.ConsumerProtocol, "the type that its members had, when it is restored")
	testkit.Equal(t, r.stable(want("bills").protocols("sticky"))[0].Generation, before+2, "the generation of those who come later")
}

// K6: what members have to say, and what is assigned to them, is bounded.
func TestTooMuchToStore(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders"), want("orders"))
	large := want("orders")
	large.Protocols[0].Metadata = append(large.Protocols[0].Metadata, make([]byte, member.MaxBytes)...)
	r.refused(r.join(large), member.ErrTooMany)
	r.refused(r.join(large.as(all[1].Member)), member.ErrTooMany)
	many := make([]string, member.MaxTopics+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	r.refused(r.join(want(many...)), member.ErrTooMany)
	r.join(want("orders").as(all[0].Member))
	r.join(want("orders").as(all[1].Member))
	led := r.group.Generation()
	r.tickets++
	r.take(r.group.Sync(r.now, r.tickets, Sync{
		Member: all[0].Member, Generation: led, Assignments: map[string][]byte{all[1].Member: make([]byte, member.MaxBytes)},
	}))
	r.refused(r.tickets, member.ErrTooMany)
	testkit.That(t, r.group.Bytes() < member.MaxBytes, "%d bytes are kept", r.group.Bytes())
	testkit.Equal(t, r.group.State(), Completing)
}

// K2: a group that was stored goes on where it was: members that were stable are not disturbed, and those that wait
// for their assignment get it.
func TestRestore(t *testing.T) {
	r := newRoom(t, 0)
	all := r.stable(want("orders").static("a"), want("bills"))
	r.group = Restore(r.now.Add(time.Minute), r.group.Stored(), 0) // its coordinator was away for longer than a session
	r.now = r.now.Add(time.Minute)
	r.pass(9 * time.Second)
	for i, j := range all {
		testkit.Must(t, r.group.Heartbeat(r.now, j.Member, []string{"a", ""}[i], j.Generation))
		testkit.Equal(t, r.assigned(r.sync(Joined{Member: j.Member, Generation: j.Generation})), "for "+j.Member)
	}
	testkit.Slices(t, r.group.Topics(), []string{"bills", "orders"}, "topics")
	r.pass(10 * time.Second)
	testkit.Equal(t, r.members(), "", "members that nobody has heard of since")

	r = newRoom(t, 0)
	first := r.joined(r.join(want("orders")))
	r.group = Restore(r.now, r.group.Stored(), 0)
	testkit.Equal(t, r.group.State(), Completing)
	testkit.Equal(t, r.assigned(r.sync(first)), "for "+first.Member)

	empty := Restore(r.now, New(0).Stored(), 0)
	testkit.That(t, empty.Idle() && empty.State() == Empty && empty.Type() == "", "an empty group is restored as %v", empty.State())
}

// K2 K6: a static member that comes back before it has asked for its assignment is waited for no longer: the time to ask
// ends, and nothing is due again and again.
func TestAStaticMemberThatComesBackEndsTheWait(t *testing.T) {
	r := newRoom(t, 0)
	first := r.joined(r.join(want("orders").static("a")))
	second := r.join(want("orders").static("s"))
	leader := r.joined(r.join(want("orders").static("a").as(first.Member)))
	r.joined(second)
	r.assigned(r.sync(leader))
	back := r.joined(r.join(want("orders").static("s")))
	for range 20 {
		r.pass(5 * time.Second) // which fails where something stays due
		testkit.Must(t, r.group.Heartbeat(r.now, leader.Member, "a", leader.Generation))
		testkit.Must(t, r.group.Heartbeat(r.now, back.Member, "s", back.Generation))
	}
	testkit.Equal(t, r.group.State(), Stable)
}
