package storetest

import (
	"slices"

	"github.com/eventyard/eventyard/processor"
)

var leaseTests = []test{
	{"a partition that was never owned has no lease", neverOwned},
	{"a first claim creates the lease", firstClaim},
	{"a claim of nothing writes nothing", claimNothing},
	{"a first claim of a lease that exists is left out", claimExisting},
	{"a claim in an old version is left out and changes nothing", claimStale},
	{"a claim in the version of a lease that does not exist is left out", claimMissing},
	{"a renewal keeps Acquired, owner and epoch, and changes the version", renewal},
	{"a release leaves the epoch and frees the partition", release},
	{"a released partition is acquired with a higher epoch", acquireReleased},
	{"an owned partition is taken with a higher epoch in the version seen", takeOwned},
	{"an epoch below the recorded one is left out", lowerEpoch},
	{"the recorded epoch is left out for another owner", equalEpoch},
	{"of a batch those whose condition holds are written, in the order given", partWon},
	{"acquisitions, renewals and releases go together", mixedBatch},
	{"versions change with every write and never come back", leaseVersions},
	{"all leases of a group are read", manyLeases},
	{"an owner's name is kept as it is", ownerNames},
}

func neverOwned(f *fixture) {
	f.wantLeases()
}

func firstClaim(f *fixture) {
	got := f.claim(processor.Lease{Partition: "3", Owner: "a", Epoch: 1})
	f.wantLease(got, "3", "a", 1)
	if got.Acquired.IsZero() || got.Renewed.Before(got.Acquired) {
		f.Errorf("acquired %v, renewed %v", got.Acquired, got.Renewed)
	}
	f.wantLeases(got)
}

func claimNothing(f *fixture) {
	won, err := f.store.Claim(f.ctx, f.group, nil)
	if err != nil || len(won) != 0 {
		f.Errorf("got %v, %v", won, err)
	}
	f.wantLeases()
}

func claimExisting(f *fixture) {
	had := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	f.claimLost(processor.Lease{Partition: "0", Owner: "b", Epoch: 2})
	f.wantLeases(had)
}

func claimStale(f *fixture) {
	old := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	now := f.claim(old)
	f.claimLost(old)
	f.claimLost(processor.Lease{Partition: "0", Owner: "b", Epoch: 2, Version: old.Version})
	f.claimLost(processor.Lease{Partition: "0", Owner: "", Epoch: 1, Version: old.Version})
	f.wantLeases(now)
}

func claimMissing(f *fixture) {
	other := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	f.claimLost(processor.Lease{Partition: "1", Owner: "a", Epoch: 1, Version: other.Version})
	f.wantLeases(other)
}

func renewal(f *fixture) {
	first := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 7})
	last := first
	for range 3 {
		last = f.claim(last)
		f.wantLease(last, "0", "a", 7)
		if !last.Acquired.Equal(first.Acquired) {
			f.Errorf("acquired moved from %v to %v", first.Acquired, last.Acquired)
		}
		if last.Renewed.Before(first.Renewed) || last.Renewed.Before(last.Acquired) {
			f.Errorf("renewed at %v, acquired at %v", last.Renewed, last.Acquired)
		}
	}
	f.wantLeases(last)
}

func release(f *fixture) {
	had := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 4})
	had.Owner = ""
	free := f.claim(had)
	f.wantLease(free, "0", "", 4)
	f.wantLeases(free)
}

func acquireReleased(f *fixture) {
	had := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 4})
	had.Owner = ""
	free := f.claim(had)
	f.claimLost(processor.Lease{Partition: "0", Owner: "b", Epoch: 5}) // it still exists
	taken := f.claim(processor.Lease{Partition: "0", Owner: "b", Epoch: 5, Version: free.Version})
	f.wantLease(taken, "0", "b", 5)
	f.wantLeases(taken)
}

func takeOwned(f *fixture) {
	had := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	taken := f.claim(processor.Lease{Partition: "0", Owner: "b", Epoch: 2, Version: had.Version})
	f.wantLease(taken, "0", "b", 2)
	if taken.Acquired.Before(had.Acquired) {
		f.Errorf("taken at %v, before the owner had it at %v", taken.Acquired, had.Acquired)
	}
	f.claimLost(had) // the former owner's renewal
	f.wantLeases(taken)
}

func lowerEpoch(f *fixture) {
	had := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 5})
	for _, owner := range []string{"a", "b", ""} {
		f.claimLost(processor.Lease{Partition: "0", Owner: owner, Epoch: 4, Version: had.Version})
	}
	had.Owner = ""
	free := f.claim(had)
	f.claimLost(processor.Lease{Partition: "0", Owner: "b", Epoch: 4, Version: free.Version})
	f.wantLeases(free)
}

// equalEpoch would let two owners read and save under one number, and nothing could tell them
// apart.
func equalEpoch(f *fixture) {
	had := f.claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 5})
	f.claimLost(processor.Lease{Partition: "0", Owner: "b", Epoch: 5, Version: had.Version})
	f.wantLeases(had)
	had.Owner = ""
	free := f.claim(had)
	f.claimLost(processor.Lease{Partition: "0", Owner: "b", Epoch: 5, Version: free.Version})
	f.wantLeases(free)
}

func partWon(f *fixture) {
	first := f.claimAll(lease("4", "a", 1), lease("1", "a", 1), lease("2", "a", 1))
	renewed := f.claim(first[1]) // partition 1: what the batch has is old
	batch := []processor.Lease{
		lease("9", "b", 1), first[2], first[1], lease("4", "b", 1), lease("0", "b", 1),
	}
	won, err := f.store.Claim(f.ctx, f.group, batch)
	if err != nil {
		f.Fatalf("claim: %v", err)
	}
	if got, want := partitionsOf(won), []string{"9", "2", "0"}; !slices.Equal(got, want) {
		f.Fatalf("won %v, want %v", got, want)
	}
	f.wantLeases(append(won, renewed, first[0])...)
}

func mixedBatch(f *fixture) {
	first := f.claimAll(lease("0", "a", 1), lease("1", "a", 1), lease("2", "z", 6))
	freed := first[1]
	freed.Owner = ""
	taken := lease("2", "a", 7)
	taken.Version = first[2].Version
	won := f.claimAll(first[0], freed, taken, lease("3", "a", 1))
	f.wantLease(won[0], "0", "a", 1)
	f.wantLease(won[1], "1", "", 1)
	f.wantLease(won[2], "2", "a", 7)
	f.wantLease(won[3], "3", "a", 1)
	f.wantLeases(won...)
}

func leaseVersions(f *fixture) {
	seen := map[processor.Version]bool{}
	now := lease("0", "a", 1)
	for i := range 12 {
		if i%4 == 3 { // every fourth write is a release, the next an acquisition
			now.Owner = ""
		} else if now.Owner == "" {
			now.Owner, now.Epoch = "a", now.Epoch+1
		}
		now = f.claim(now)
		if now.Version == "" || seen[now.Version] {
			f.Fatalf("write %d has version %q, which was there before", i, now.Version)
		}
		seen[now.Version] = true
	}
}

func manyLeases(f *fixture) {
	var want []processor.Lease
	for i := range Partitions {
		want = append(want, lease(partition(i), "owner-"+partition(i%5), int64(i+1)))
	}
	f.wantLeases(f.claimAll(want...)...)
}

func ownerNames(f *fixture) {
	var want []processor.Lease
	for i, owner := range []string{"Host-A", "host-a", "a b", "worker:7/x", "0b6f5c1e-3c4a-4f57-9d0e-0f7c8f3f2a11"} {
		want = append(want, lease(partition(i), owner, 1))
	}
	f.wantLeases(f.claimAll(want...)...)
}

func lease(partition, owner string, epoch int64) processor.Lease {
	return processor.Lease{Partition: partition, Owner: owner, Epoch: epoch}
}

func partitionsOf(leases []processor.Lease) (names []string) {
	for _, l := range leases {
		names = append(names, l.Partition)
	}
	return names
}

// claim writes one lease and wants it written.
func (f *fixture) claim(l processor.Lease) processor.Lease {
	f.Helper()
	return f.claimAll(l)[0]
}

// claimAll writes leases and wants all of them written, in order.
func (f *fixture) claimAll(leases ...processor.Lease) []processor.Lease {
	f.Helper()
	leases = f.climbed(leases)
	won, err := f.store.Claim(f.ctx, f.group, leases)
	if err != nil {
		f.Fatalf("claim %+v: %v", leases, err)
	}
	if got, want := partitionsOf(won), partitionsOf(leases); !slices.Equal(got, want) {
		f.Fatalf("won %v of %v", got, want)
	}
	for i, l := range won {
		f.wantLease(l, leases[i].Partition, leases[i].Owner, leases[i].Epoch)
		if l.Version == "" || l.Version == leases[i].Version {
			f.Fatalf("claim of version %q gave version %q", leases[i].Version, l.Version)
		}
	}
	return won
}

// climbed gives the leases once only one step is left to their epochs, where a store takes no more
// at once.
func (f *fixture) climbed(leases []processor.Lease) []processor.Lease {
	f.Helper()
	if !f.opt.EpochsByOne {
		return leases
	}
	leases = slices.Clone(leases)
	for i, l := range leases {
		for epoch := f.leases()[l.Partition].Epoch + 1; epoch < l.Epoch; epoch++ {
			won, err := f.store.Claim(f.ctx, f.group, []processor.Lease{{Partition: l.Partition, Owner: "former", Epoch: epoch, Version: leases[i].Version}})
			if err != nil || len(won) != 1 {
				f.Fatalf("climb to epoch %d of partition %s: %v, %v", epoch, l.Partition, won, err)
			}
			leases[i].Version = won[0].Version
		}
	}
	return leases
}

// claimLost writes a lease and wants it left out.
func (f *fixture) claimLost(l processor.Lease) {
	f.Helper()
	won, err := f.store.Claim(f.ctx, f.group, []processor.Lease{l})
	if err != nil {
		f.Fatalf("claim %+v: %v, want it left out without an error", l, err)
	}
	if len(won) != 0 {
		f.Fatalf("claim %+v won %+v", l, won)
	}
}

func (f *fixture) wantLease(got processor.Lease, partition, owner string, epoch int64) {
	f.Helper()
	if got.Partition != partition || got.Owner != owner || got.Epoch != epoch {
		f.Fatalf("lease is %+v, want partition %s of %q at epoch %d", got, partition, owner, epoch)
	}
}

// wantLeases wants these leases to be all that are read, as their writes gave them.
func (f *fixture) wantLeases(want ...processor.Lease) {
	f.Helper()
	got := f.leases()
	if len(got) != len(want) {
		f.Fatalf("read %d leases %+v, want %d", len(got), got, len(want))
	}
	for _, w := range want {
		g, found := got[w.Partition]
		if !found {
			f.Fatalf("partition %s has no lease", w.Partition)
		}
		f.wantLease(g, w.Partition, w.Owner, w.Epoch)
		if g.Version != w.Version || !g.Renewed.Equal(w.Renewed) || (w.Owner != "" && !g.Acquired.Equal(w.Acquired)) {
			f.Fatalf("read %+v, its write gave %+v", g, w)
		}
	}
}

// leases reads all leases of the group, by partition.
func (f *fixture) leases() map[string]processor.Lease {
	f.Helper()
	read, err := f.store.Leases(f.ctx, f.group)
	if err != nil {
		f.Fatalf("leases: %v", err)
	}
	byPartition := map[string]processor.Lease{}
	for _, l := range read {
		if _, twice := byPartition[l.Partition]; twice {
			f.Fatalf("partition %s is read twice", l.Partition)
		}
		byPartition[l.Partition] = l
	}
	return byPartition
}
