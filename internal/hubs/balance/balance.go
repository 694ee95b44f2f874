// Package balance decides which partitions an instance should take: a pure function of what
// it sees, run by each instance by itself.
//
// Nobody is in charge, so everyone works out the whole picture: how many partitions each
// living instance should have, which of the free ones go to whom, and who has to ask whom for
// the rest. Of that it does its own part. Instances that see the same therefore never want the
// same partition, and those that see nearly the same seldom do, because who gets what is found
// by rendezvous hashing. What they do want twice is settled by compare-and-set in the store.
//
// Partitions stay where they are as long as they can: the instances that hold most get the
// shares that are one larger, nothing is taken while counts differ by at most one, and what
// was asked for counts as moved, so that nobody asks for too much.
package balance

// View is what one instance sees of its group.
type View struct {
	Self string
	// Live are all living instances, Self among them; foreign owners, too.
	Live []string
	// Partitions are all of the hub, in any order.
	Partitions []Partition
	// Greedy: take the whole share at once; else at most one from others a round.
	Greedy bool
}

// Partition is one partition as seen.
type Partition struct {
	ID string
	// Owner is a member of Live; empty: free, or its owner's lease is dead.
	Owner string
	// Next is the living instance that has asked for it; empty: none.
	Next string
	// Foreign: its owner knows no handoff, and is taken from without asking.
	Foreign bool
}

// Plan is what to do now. No partition is in two of the lists; each is sorted. There is nothing for
// owners to do: they release what they are asked for.
type Plan struct {
	// Claim are free: take them. Those that were released for Self are among them.
	Claim []string
	// Ask are owned by others that have too many: write Self as next.
	Ask []string
	// Take are foreign and owned by others that have too many: take them without asking.
	Take []string
	// Withdraw are asked for by Self but no longer wanted, or had already.
	Withdraw []string
}

// Decide plans one round. Instances that see the same do not claim the same: who gets what is
// found by everyone alike.
func Decide(v View) Plan {
	p := newPicture(v)
	var plan Plan
	plan.Withdraw = p.withdraw(v.Self)
	plan.Claim = p.claim(v.Self)
	plan.Ask, plan.Take = p.steal(v.Self, v.Greedy)
	return plan
}

// Quiet: there is nothing to do.
func (p Plan) Quiet() bool {
	return len(p.Claim)+len(p.Ask)+len(p.Take)+len(p.Withdraw) == 0
}
