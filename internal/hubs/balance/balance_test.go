package balance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// group reads partitions written as "owner", "owner>next", "-" (free), "->next" and "owner!"
// (foreign), numbered from 0.
func group(words string) []Partition {
	var parts []Partition
	for i, word := range strings.Fields(words) {
		part := Partition{ID: fmt.Sprint(i)}
		word, part.Foreign = strings.CutSuffix(word, "!")
		part.Owner, part.Next, _ = strings.Cut(word, ">")
		if part.Owner == "-" {
			part.Owner = ""
		}
		parts = append(parts, part)
	}
	return parts
}

func live(words string) []string { return strings.Fields(words) }

// P2
func TestWhatOneInstanceDoes(t *testing.T) {
	type counts struct{ claim, ask, take, withdraw int }
	for _, c := range []struct {
		name       string
		live       string
		partitions string
		greedy     bool
		self       string
		want       counts
	}{
		{"alone it takes everything that is free", "a", "- - - -", false, "a", counts{claim: 4}},
		{"of two each takes its half at once, balanced", "a b", "- - - -", false, "b", counts{claim: 2}},
		{"of two each takes its half at once, greedy", "a b", "- - - -", true, "b", counts{claim: 2}},
		{"free ones go to who has less", "a b", "a a - -", false, "a", counts{}},
		{"and all of them", "a b", "a a - -", false, "b", counts{claim: 2}},
		{"the odd one stays with who has more", "a b", "b b a", true, "a", counts{}},
		{"a difference of one is even", "a b c", "a a b c", true, "b", counts{}},
		{"a difference of two is not", "a b", "a a a b", true, "b", counts{ask: 1}},
		{"balanced asks for one at a time", "a b", "a a a a a a", false, "b", counts{ask: 1}},
		{"greedy asks for its whole share", "a b", "a a a a a a", true, "b", counts{ask: 3}},
		{"the overloaded does nothing: it is asked", "a b", "a a a a a a", true, "a", counts{}},
		{"what is asked for counts as moved", "a b", "a>b a>b a>b a a a", true, "b", counts{}},
		{"what is asked for is asked for by nobody else", "a b c", "a>b a>b a a a a", true, "c", counts{ask: 2}},
		{"what was released for it is claimed", "a b", "->b a a a", false, "b", counts{claim: 1, ask: 1}},
		{"what was released for another is left alone", "a b c", "->b a c", false, "c", counts{}},
		{"what an instance asked for that died is free", "a b", "->z a b", false, "a", counts{claim: 1}},
		{"free ones come before asking", "a b", "a a a a - -", true, "b", counts{claim: 2, ask: 1}},
		{"asking is withdrawn when the share is had", "a b c", "a>c a>c b c c", true, "c", counts{withdraw: 2}},
		{"asking is withdrawn when the owner became the poorer", "a b", "a>b b b", true, "b", counts{withdraw: 1}},
		{"a note about what it has is withdrawn", "a b", "a>a b", true, "a", counts{withdraw: 1}},
		{"foreign owners count", "a x", "x! x! - -", true, "a", counts{claim: 2}},
		{"and are taken from without asking", "a x", "x! x! x! x!", true, "a", counts{take: 2}},
		{"one at a time when balanced", "a x", "x! x! x! x!", false, "a", counts{take: 1}},
		{"more instances than partitions: some have none", "a b c", "a b", true, "c", counts{}},
		{"a hub without partitions wants nothing", "a b", "", true, "a", counts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Decide(View{Self: c.self, Live: live(c.live), Partitions: group(c.partitions), Greedy: c.greedy})
			got := counts{len(plan.Claim), len(plan.Ask), len(plan.Take), len(plan.Withdraw)}
			testkit.Equal(t, got, c.want, "%s sees %q: %+v", c.self, c.partitions, plan)
		})
	}
}

func TestAnInstanceThatIsNotListedCountsItself(t *testing.T) {
	plan := Decide(View{Self: "b", Live: live("a"), Partitions: group("- - - -")})
	testkit.Equal(t, len(plan.Claim), 2, "claims %v", plan.Claim)
}

func TestTheOrderOfWhatIsSeenDoesNotMatter(t *testing.T) {
	parts := group("a a a a - - b>c - ->b a a a")
	ids := live("c a d b")
	want := Decide(View{Self: "d", Live: ids, Partitions: parts, Greedy: true})
	slices.Reverse(parts)
	slices.Sort(ids)
	got := Decide(View{Self: "d", Live: ids, Partitions: parts, Greedy: true})
	if !reflect.DeepEqual(got, want) || want.Quiet() {
		t.Errorf("%+v and %+v, want the same", got, want)
	}
}

// Simultaneous starters that do not all see each other yet still go mostly apart: one
// instance more changes the choice of the others little.
func TestViewsThatDifferByOneInstanceCollideLittle(t *testing.T) {
	parts := group(strings.Repeat("- ", 64))
	seven := live("i1 i2 i3 i4 i5 i6 i7")
	claimed := map[string]int{}
	for i, id := range seven {
		seen := seven
		if i%2 == 0 {
			seen = append(slices.Clone(seven), "i8")
		}
		for _, p := range Decide(View{Self: id, Live: seen, Partitions: parts}).Claim {
			claimed[p]++
		}
	}
	twice := 0
	for _, n := range claimed {
		if n > 1 {
			twice++
		}
	}
	if twice > 16 {
		t.Errorf("%d of 64 partitions claimed twice, want a quarter at most", twice)
	}
}

func TestConvergeGivesUp(t *testing.T) {
	out := Converge(live("a b"), group("a a a a a a a a"), false, 2)
	if out.Even || out.Rounds != 2 {
		t.Errorf("after two rounds: even %v after %d, want neither", out.Even, out.Rounds)
	}
}
