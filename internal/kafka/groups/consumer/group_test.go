package consumer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestASoleMemberGetsEverything(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 3, 0), hub("other", 2, 0))
	assigned(t, w.say(join("a", "orders", "missing")), 1, of("orders", 0, 1, 2))
	testkit.Equal(t, w.g.State(), "Stable")
	unassigned(t, w.say(beat("a", 1)), 1)
	before := w.g
	unassigned(t, w.say(owning("a", 1, of("orders", 0, 1, 2))), 1)
	testkit.Equal(t, w.g, before, "a heartbeat without news leaves nothing to store")
}

func TestAPartitionIsGivenUpBeforeItIsAssigned(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0))
	w.say(join("a", "orders"))
	assigned(t, w.say(join("b", "orders")), 2, nil) // a has both
	testkit.Equal(t, w.g.State(), "Reconciling")

	assigned(t, w.say(beat("a", 1)), 1, of("orders", 0)) // told to give up, with its old epoch
	unassigned(t, w.say(beat("b", 2)), 2)
	unassigned(t, w.say(owning("a", 1, of("orders", 0, 1))), 1) // it has not yet
	unassigned(t, w.say(beat("b", 2)), 2)
	unassigned(t, w.say(owning("a", 1, of("orders", 0))), 2) // it has
	assigned(t, w.say(beat("b", 2)), 2, of("orders", 1))
	testkit.Equal(t, w.g.State(), "Stable")
}

func TestAMemberThatLeavesFreesItsPartitionsAtOnce(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0))
	w.say(join("a", "orders"))
	w.say(join("b", "orders"))
	testkit.Equal(t, w.say(beat("a", EpochLeave)).Epoch, EpochLeave)
	assigned(t, w.say(beat("b", 2)), 3, of("orders", 0, 1))
	w.refused(beat("a", 1), member.ErrUnknown)
	w.refused(beat("a", EpochLeave), member.ErrUnknown)
	w.say(beat("b", EpochLeave))
	testkit.Equal(t, w.g.State(), "Empty")
	testkit.Equal(t, w.g.Epoch, int32(4), "the epoch of a group that is empty")
}

func TestOnlyTheEpochOfTheLastAnswerIsGood(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 4, 0))
	w.say(join("a", "orders"))
	w.say(join("b", "orders"))
	w.refused(beat("a", 2), ErrFencedEpoch)
	w.refused(beat("stranger", 1), member.ErrUnknown)
	w.settle()
	w.say(join("c", "orders"))
	w.settle() // a has had epochs 1, 2 and 3
	w.refused(owning("a", 1, nil), ErrFencedEpoch)
}

func TestAMemberWhoseAnswerWasLostIsAnsweredAlike(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0))
	w.say(join("a", "orders"))
	w.say(join("b", "orders"))
	w.say(beat("b", EpochLeave))
	lost := w.say(beat("a", 1)) // epoch 3
	again := w.say(owning("a", 1, of("orders", 0, 1)))
	testkit.Equal(t, again.Epoch, lost.Epoch)
	assigned(t, again, 3, of("orders", 0, 1))

	w.refused(beat("a", 1), ErrFencedEpoch)                        // it has to say what it owns
	w.refused(owning("a", 1, of("other", 7)), ErrFencedEpoch)      // and that has to be its own
	assigned(t, w.say(join("a", "orders")), 3, of("orders", 0, 1)) // and whoever starts anew hears everything
}

func TestAnAssignmentIsRepeatedToWhoSaysEverything(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0))
	w.say(join("a", "orders"))
	h := owning("a", 1, nil)
	unassigned(t, w.say(h), 1)
	h.RebalanceTimeout, h.Names = minute, []string{"orders"}
	assigned(t, w.say(h), 1, of("orders", 0))
}

func TestAFencedMemberComesBackWithNothing(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0))
	w.say(join("a", "orders"))
	w.say(join("b", "orders"))
	w.say(beat("a", 1)) // is to give up one of them
	testkit.Equal(t, show(w.g.Member("a").Revoking), "orders/1 ")
	assigned(t, w.say(join("a", "orders")), 2, of("orders", 0)) // has given up all
	assigned(t, w.say(beat("b", 2)), 2, of("orders", 1))
}

func TestASubscriptionIsChangedByAHeartbeat(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0), hub("bills", 1, 0))
	w.say(join("a", "orders"))
	h := beat("a", 1)
	h.Names = []string{"bills", "orders", "bills"}
	assigned(t, w.say(h), 2, of("orders", 0).Or(of("bills", 0)))
	h.Epoch, h.Names = 2, []string{"bills"}
	assigned(t, w.say(h), 2, of("bills", 0)) // and first gives up orders
	unassigned(t, w.say(owning("a", 2, of("bills", 0))), 3)
	h.Epoch, h.Names = 3, []string{}
	assigned(t, w.say(h), 3, nil)
}

func TestHubsThatAreMadeAndDeletedRaiseTheEpoch(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0))
	w.say(join("a", "orders", "bills"))
	testkit.Equal(t, w.g.Refresh(w.c), w.g, "nothing has changed")
	w.c["unrelated"] = hub("unrelated", 1, 0)
	testkit.Equal(t, w.g.Refresh(w.c), w.g, "nobody subscribes to it")

	w.c["bills"] = hub("bills", 2, 0)
	w.g = w.g.Refresh(w.c)
	assigned(t, w.say(beat("a", 1)), 2, of("bills", 0, 1).Or(of("orders", 0)))
	w.c["bills"] = hub("bills", 2, 1) // deleted and made anew: other partitions
	w.g = w.g.Refresh(w.c)
	assigned(t, w.say(beat("a", 2)), 2, of("orders", 0))
	a := w.say(owning("a", 2, of("orders", 0)))
	testkit.Equal(t, a.Epoch, int32(3))
	testkit.Equal(t, a.Assignment[0].Topic, hub("bills", 2, 1).ID)
	delete(w.c, "bills")
	w.g = w.g.Refresh(w.c)
	assigned(t, w.say(beat("a", 3)), 3, of("orders", 0))
}

func TestAStaticMemberComesBackToWhatItHad(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 4, 0))
	w.say(static(join("a", "orders"), "one"))
	w.say(static(join("b", "orders"), "two"))
	w.settle()
	epoch := w.g.Epoch
	had := w.g.Member("a").Assigned

	w.refused(static(join("c", "orders"), "one"), ErrUnreleasedInstance)
	testkit.Equal(t, w.say(static(beat("a", EpochStaticLeave), "one")).Epoch, EpochStaticLeave)
	testkit.Equal(t, w.g.State(), "Stable", "nobody is to do anything")
	unassigned(t, w.say(beat("b", epoch)), epoch)
	w.refused(static(beat("a", epoch), "one"), ErrFencedEpoch)

	assigned(t, w.say(static(join("c", "orders"), "one")), epoch, had)
	testkit.Equal(t, w.g.Epoch, epoch, "nobody else hears of it")
	w.refused(static(beat("a", epoch), "one"), member.ErrFenced)
	w.refused(static(beat("a", EpochLeave), "one"), member.ErrFenced)
	w.refused(beat("a", epoch), member.ErrUnknown)
}

func TestAStaticMemberThatComesBackMayWantSomethingElse(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0), hub("bills", 1, 0))
	w.say(static(join("a", "orders"), "one"))
	w.say(static(beat("a", EpochStaticLeave), "one"))
	assigned(t, w.say(static(join("b", "bills"), "one")), 2, of("bills", 0))
	testkit.Equal(t, len(w.g.Members()), 1)
}

func TestAStaticMemberThatStaysAwayIsReplaced(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0))
	w.say(static(join("a", "orders"), "one"))
	w.say(join("b", "orders"))
	w.settle()
	w.say(static(beat("a", EpochStaticLeave), "one"))
	w.g = w.g.Remove([]string{"a"}, w.c) // its session has ended
	assigned(t, w.say(beat("b", 2)), 3, of("orders", 0, 1))
}

func TestOffsetsAreThoseOfAMembersEpoch(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0))
	testkit.Check(t, w.g.CheckCommit("", -1))
	w.say(join("a", "orders"))
	testkit.Check(t, w.g.CheckCommit("a", 1))
	testkit.ErrorIs(t, w.g.CheckCommit("a", 0), ErrStaleEpoch)
	testkit.ErrorIs(t, w.g.CheckCommit("a", 2), ErrStaleEpoch)
	testkit.ErrorIs(t, w.g.CheckCommit("b", 1), member.ErrUnknown)
	testkit.ErrorIs(t, w.g.CheckCommit("", -1), member.ErrUnknown, "while there are members nobody else commits")
	testkit.Check(t, w.g.CheckFetch("", -1))
	testkit.Check(t, w.g.CheckFetch("a", 1))
	testkit.ErrorIs(t, w.g.CheckFetch("a", 5), ErrStaleEpoch)
}

func TestMostMembersChooseTheAssignor(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 4, 0))
	testkit.Equal(t, w.g.Assignor(), Uniform)
	by := func(h Heartbeat, name string) Heartbeat { h.Assignor = &name; return h }
	w.say(by(join("a", "orders"), Range))
	testkit.Equal(t, w.g.Assignor(), Range)
	w.say(by(join("b", "orders"), Uniform))
	testkit.Equal(t, w.g.Assignor(), Uniform)
	w.say(by(join("c", "orders"), Range))
	testkit.Equal(t, w.g.Assignor(), Range)
	w.refused(by(join("d", "orders"), "best"), ErrAssignor)
}

func TestAGroupHasAThousandMembersAtMost(t *testing.T) { // K6
	w := newWorld(t, hub("orders", 1, 0))
	w.g = crowd(member.MaxMembers - 1)
	w.say(join("last", "orders"))
	w.refused(join("more", "orders"), member.ErrTooMany)
	w.say(beat("last", EpochLeave))
	w.say(join("more", "orders"))
}

func TestWhatMembersSayIsBounded(t *testing.T) { // K6
	w := newWorld(t, hub("orders", 1, 0))
	var err error
	for i := 0; i < member.MaxMembers && err == nil; i++ {
		names := []string{fmt.Sprint(i)}
		for j := range 100 {
			names = append(names, fmt.Sprint(strings.Repeat("x", 250), i, j))
		}
		w.g, _, err = w.g.Heartbeat(join(fmt.Sprint("m", i), names...), w.c)
	}
	testkit.ErrorIs(t, err, member.ErrTooMany)
}

func TestHeartbeatsThatMakeNoSenseAreRefused(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0))
	w.say(join("a", "orders"))
	w.say(static(join("s", "orders"), "one"))
	long := strings.Repeat("x", member.MaxIDBytes+1)
	for why, h := range map[string]Heartbeat{
		"no member id":               join("", "orders"),
		"an epoch that is none":      beat("a", -3),
		"-2 of a dynamic member":     beat("a", EpochStaticLeave),
		"a join without time-out":    {Member: "b", RebalanceTimeout: -1, Names: []string{"orders"}},
		"a join without names":       {Member: "b", RebalanceTimeout: minute},
		"a join that owns something": {Member: "b", RebalanceTimeout: minute, Names: []string{}, Owned: of("orders", 0)},
		"a long id":                  join(long, "orders"),
		"a long instance":            static(join("b", "orders"), long),
		"an id that is no text":      join("\xff", "orders"),
		"too many names":             join("b", make([]string, maxNames+1)...),
		"another instance id":        static(join("a", "orders"), "two"),
	} {
		t.Run(why, func(t *testing.T) {
			w.t = t
			w.refused(h, ErrInvalid)
		})
	}
	w.t = t
	w.refused(static(beat("a", 1), "nobody's"), member.ErrUnknown)
	w.refused(static(beat("a", EpochStaticLeave), "one"), member.ErrFenced)
}
