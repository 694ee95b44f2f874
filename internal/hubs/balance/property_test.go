package balance

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawn is any group, also one in the middle of moving.
type drawn struct {
	live       []string
	partitions []Partition
	greedy     bool
}

func draw(t *rapid.T) drawn {
	d := drawn{greedy: rapid.Bool().Draw(t, "greedy")}
	for i := range rapid.IntRange(1, 9).Draw(t, "instances") {
		d.live = append(d.live, fmt.Sprintf("i%d", i))
	}
	somebody := rapid.SampledFrom(d.live)
	for i := range rapid.IntRange(0, 40).Draw(t, "partitions") {
		part := Partition{ID: fmt.Sprint(i)}
		if rapid.IntRange(0, 3).Draw(t, "owned") > 0 {
			part.Owner = somebody.Draw(t, "owner")
		}
		if rapid.IntRange(0, 4).Draw(t, "asked") == 0 {
			part.Next = somebody.Draw(t, "next")
		}
		d.partitions = append(d.partitions, part)
	}
	return d
}

func (d drawn) plans() map[string]Plan {
	plans := map[string]Plan{}
	for _, id := range d.live {
		plans[id] = Decide(View{Self: id, Live: d.live, Partitions: d.partitions, Greedy: d.greedy})
	}
	return plans
}

// counts are what each owns.
func counts(live []string, partitions []Partition) map[string]int {
	n := map[string]int{}
	for _, id := range live {
		n[id] = 0
	}
	for _, part := range partitions {
		if part.Owner != "" {
			n[part.Owner]++
		}
	}
	return n
}

func spread(n map[string]int) int {
	least, most := -1, 0
	for _, c := range n {
		most = max(most, c)
		if least < 0 || c < least {
			least = c
		}
	}
	return most - least
}

func TestPlansOfOneViewAreDisjointAndInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		wanted := map[string]string{}
		for id, plan := range d.plans() {
			for _, p := range slices.Concat(plan.Claim, plan.Ask, plan.Take) {
				if other, twice := wanted[p]; twice {
					t.Fatalf("partition %s is wanted by %s and %s", p, other, id)
				}
				wanted[p] = id
			}
			for _, p := range plan.Withdraw {
				if wanted[p] == id {
					t.Fatalf("%s wants and withdraws %s", id, p)
				}
			}
			if !d.greedy && len(plan.Ask)+len(plan.Take) > 1 {
				t.Fatalf("%s takes %v and %v from others in one round", id, plan.Ask, plan.Take)
			}
			d.checkSlots(t, id, plan)
		}
	})
}

// checkSlots: what is claimed is free, what is asked for is another's and asked for by
// nobody, what is withdrawn was one's own wish.
func (d drawn) checkSlots(t *rapid.T, id string, plan Plan) {
	for _, part := range d.partitions {
		if slices.Contains(plan.Claim, part.ID) && (part.Owner != "" || part.Next != "" && part.Next != id) {
			t.Fatalf("%s claims %+v", id, part)
		}
		if slices.Contains(plan.Ask, part.ID) && (part.Owner == "" || part.Owner == id || part.Next != "") {
			t.Fatalf("%s asks for %+v", id, part)
		}
		if slices.Contains(plan.Withdraw, part.ID) && part.Next != id {
			t.Fatalf("%s withdraws %+v", id, part)
		}
	}
}

func TestNobodyWantsMoreThanItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		share := (len(d.partitions) + len(d.live) - 1) / len(d.live)
		for id, plan := range d.plans() {
			has := 0
			for _, part := range d.partitions {
				mine := part.Owner == id && part.Next == "" || part.Next == id && part.Owner != "" && !slices.Contains(plan.Withdraw, part.ID)
				if mine || part.Owner == id && part.Next == id {
					has++
				}
			}
			if wants := len(plan.Claim) + len(plan.Ask) + len(plan.Take); wants > 0 && has+wants > share {
				t.Fatalf("%s has %d and wants %+v of a share of %d", id, has, plan, share)
			}
		}
	})
}

func TestAnyGroupBecomesEvenAndStaysSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		out := Converge(d.live, d.partitions, d.greedy, 100)
		if !out.Even {
			t.Fatal("not even after 100 rounds")
		}
		n := counts(d.live, out.Partitions)
		for _, part := range out.Partitions {
			if part.Owner == "" || part.Next != "" {
				t.Fatalf("in the end there is %+v", part)
			}
		}
		if spread(n) > 1 {
			t.Fatalf("in the end there are %v", n)
		}
	})
}

// Starting from owned and free partitions alone, no more are moved than have to be.
func TestTheFewestMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		for i := range d.partitions {
			d.partitions[i].Next = ""
		}
		least := leastMoves(d.live, d.partitions)
		if out := Converge(d.live, d.partitions, d.greedy, 100); out.Moves != least {
			t.Fatalf("%d moves, %d are enough", out.Moves, least)
		}
	})
}

// leastMoves tries every way to give the larger shares.
func leastMoves(live []string, partitions []Partition) int {
	n := counts(live, partitions)
	floor, larger := len(partitions)/len(live), len(partitions)%len(live)
	least := len(partitions)
	for set := range 1 << len(live) {
		moves, ones := 0, 0
		for i, id := range live {
			share := floor
			if set>>i&1 == 1 {
				share, ones = share+1, ones+1
			}
			moves += max(0, n[id]-share)
		}
		if ones == larger {
			least = min(least, moves)
		}
	}
	return least
}

// Instances act one after another, in any order, each on what it sees then or saw a round ago; a
// claim or wish that comes too late fails, as it does in a store. It still becomes
// even, and then nobody does anything.
func TestInstancesThatSeeOldThingsBecomeEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		old := slices.Clone(d.partitions)
		for range 60 {
			before := slices.Clone(d.partitions)
			for _, id := range rapid.Permutation(d.live).Draw(t, "order") {
				seen := d.partitions
				if rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
					seen = old
				}
				d.act(id, Decide(View{Self: id, Live: d.live, Partitions: seen, Greedy: d.greedy}))
			}
			old = before
		}
		for i := 0; i < 40 && !settled(d); i++ {
			for _, id := range d.live {
				d.act(id, Decide(View{Self: id, Live: d.live, Partitions: d.partitions, Greedy: d.greedy}))
			}
		}
		if n := counts(d.live, d.partitions); spread(n) > 1 || !settled(d) {
			t.Fatalf("in the end there are %v of %+v", n, d.partitions)
		}
	})
}

// act does what is still possible of a plan, and then the owner's part, for this instance.
func (d drawn) act(self string, plan Plan) {
	for i := range d.partitions {
		part := &d.partitions[i]
		switch {
		case slices.Contains(plan.Withdraw, part.ID) && part.Next == self:
			part.Next = ""
		case slices.Contains(plan.Ask, part.ID) && part.Next == "" && part.Owner != self:
			part.Next = self
		case slices.Contains(plan.Claim, part.ID) && part.Owner == "":
			part.Owner = self
			if part.Next == self {
				part.Next = ""
			}
		}
		if part.Owner == self && part.Next != "" && part.Next != self {
			part.Owner = ""
		}
	}
}

func settled(d drawn) bool {
	for _, plan := range d.plans() {
		if !plan.Quiet() {
			return false
		}
	}
	return !slices.ContainsFunc(d.partitions, pending)
}
