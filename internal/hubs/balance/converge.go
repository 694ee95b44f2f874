package balance

import "slices"

// Outcome is what it took a group to become even.
type Outcome struct {
	// Rounds are those in which anyone did anything; Even: there came one in which nobody did.
	Rounds int
	Even   bool
	// Claims are of free partitions; Moves took a partition from a living instance.
	Claims, Moves int
	// Partitions are as they are in the end.
	Partitions []Partition
}

// Converge plays a group on paper until nobody has anything to do, or for so many rounds. In each
// round all decide on the same view, and what was asked for is released by its end: so a move takes
// two. It is how a choice made here is judged without a single instance running.
func Converge(live []string, partitions []Partition, greedy bool, rounds int) Outcome {
	out := Outcome{Partitions: slices.Clone(partitions)}
	for range rounds {
		plans := make([]Plan, len(live))
		for i, id := range live {
			plans[i] = Decide(View{Self: id, Live: live, Partitions: out.Partitions, Greedy: greedy})
		}
		busy := slices.ContainsFunc(plans, func(p Plan) bool { return !p.Quiet() })
		if out.Even = !busy && !slices.ContainsFunc(out.Partitions, pending); out.Even {
			break
		}
		out.Rounds++
		for i, id := range live {
			out.carryOut(id, plans[i])
		}
		for i := range out.Partitions { // the owners' part
			if part := &out.Partitions[i]; pending(*part) {
				part.Owner = ""
			}
		}
	}
	return out
}

// carryOut does what one instance planned.
func (o *Outcome) carryOut(self string, plan Plan) {
	for i := range o.Partitions {
		part := &o.Partitions[i]
		switch {
		case slices.Contains(plan.Withdraw, part.ID):
			part.Next = ""
		case slices.Contains(plan.Ask, part.ID):
			part.Next = self
		case slices.Contains(plan.Take, part.ID):
			part.Owner, part.Foreign = self, false
			o.Moves++
		case slices.Contains(plan.Claim, part.ID):
			if part.Next == self {
				o.Moves++
			} else {
				o.Claims++
			}
			part.Owner, part.Next = self, ""
		}
	}
}

// pending: a partition has an owner that is asked for it.
func pending(part Partition) bool {
	return part.Owner != "" && part.Next != "" && part.Next != part.Owner
}
