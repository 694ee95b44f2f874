package storetest

import (
	"errors"
	"sync"

	"github.com/eventyard/eventyard/processor"
)

var raceTests = []test{
	{"of many racing first claims exactly one wins", racingFirstClaims},
	{"of many racing takeovers exactly one wins", racingTakeovers},
	{"of many racing entries exactly one is put", racingEntries},
	{"nothing is saved under a lower epoch once begin has returned", racingBegin},
	{"nothing is saved for the first time under a lower epoch once begin has returned", racingFirstSave},
	{"a storm of instances loses no update and repeats no epoch", storm},
}

const racers = 8

// race runs n goroutines that start together, each with a store as another process has
// it, and waits for them.
func (f *fixture) race(n int, run func(i int, s processor.Store)) {
	f.Helper()
	for len(f.peers) < n {
		f.peers = append(f.peers, f.peer())
	}
	f.raceOn(f.peers[:n], run)
}

func (f *fixture) raceOn(stores []processor.Store, run func(i int, s processor.Store)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			<-start
			run(i, s)
		})
	}
	close(start)
	all.Wait()
}

func racingFirstClaims(f *fixture) {
	for range f.rounds(5) {
		f.group, f.peers = f.newGroup("racers"), nil // a process that was there before need not know of it
		all := make([]processor.Lease, Partitions)
		for p := range all {
			all[p] = lease(partition(p), "", 1)
		}
		f.raceClaims(all)
	}
}

func racingTakeovers(f *fixture) {
	var all []processor.Lease
	for p := range Partitions {
		all = append(all, lease(partition(p), "nobody", 1))
	}
	all = f.claimAll(all...)
	for range f.rounds(5) {
		for p := range all {
			all[p].Epoch++
		}
		won := f.raceClaims(all)
		for p := range all {
			all[p] = won[all[p].Partition]
		}
	}
}

// raceClaims lets all racers claim the same leases and wants one winner for each.
func (f *fixture) raceClaims(all []processor.Lease) map[string]processor.Lease {
	f.Helper()
	results := make([][]processor.Lease, racers)
	f.race(racers, func(i int, s processor.Store) {
		mine := make([]processor.Lease, len(all))
		for p := range all { // each begins somewhere else
			mine[p] = all[(p+i*len(all)/racers)%len(all)]
			mine[p].Owner = "racer-" + partition(i)
		}
		won, err := s.Claim(f.ctx, f.group, mine)
		if err != nil {
			f.Errorf("claim: %v", err)
		}
		results[i] = won
	})
	winners := map[string]processor.Lease{}
	for i, won := range results {
		for _, l := range won {
			if other, twice := winners[l.Partition]; twice {
				f.Errorf("partition %s was won by %s and by %s", l.Partition, other.Owner, l.Owner)
			}
			if l.Owner != "racer-"+partition(i) {
				f.Errorf("racer %d was given the lease of %s", i, l.Owner)
			}
			winners[l.Partition] = l
		}
	}
	if len(winners) != len(all) {
		f.Fatalf("%d of %d partitions were won", len(winners), len(all))
	}
	for _, l := range f.leases() {
		f.wantLease(winners[l.Partition], l.Partition, l.Owner, l.Epoch)
	}
	return winners
}

func racingEntries(f *fixture) {
	for round := range f.rounds(20) {
		key := "next/" + partition(round)
		var mu sync.Mutex
		var winners []string
		f.race(racers, func(i int, s processor.Store) {
			_, err := s.Put(f.ctx, f.group, processor.Entry{Key: key, Value: []byte(partition(i))})
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, partition(i))
			case !errors.Is(err, processor.ErrConflict):
				f.Errorf("put: %v", err)
			}
		})
		if len(winners) != 1 {
			f.Fatalf("%s was put by %v", key, winners)
		}
	}
}

func racingBegin(f *fixture) { f.raceBegin(true) }

func racingFirstSave(f *fixture) {
	if f.opt.FirstSaveUnfenced {
		f.Skip("the store cannot fence it")
	}
	f.raceBegin(false)
}

// raceBegin lets a former owner save as fast as it can while another takes over. What the
// new owner's Begin gave must be what is there when the former has given up.
func (f *fixture) raceBegin(saved bool) {
	stores := []processor.Store{f.peer(), f.peer()}
	for p := range f.rounds(Partitions) {
		former := f.claim(lease(partition(p), "former", 1))
		c := f.begin(former)
		if saved {
			c.Sequence = 0
			c = f.save(former, c)
		}
		var begun processor.Checkpoint
		f.raceOn(stores, func(i int, s processor.Store) {
			if i == 0 {
				f.saveUntilFenced(s, former, c)
			} else {
				begun = f.takeOver(s, former)
			}
		})
		now := f.checkpoints()[partition(p)]
		if now.Version != begun.Version && (now.Version != "" || begun.Sequence != -1) {
			f.Fatalf("begin gave %+v, and then the former owner saved %+v", begun, now)
		}
	}
}

// saveUntilFenced saves one position after the other until it is told to stop.
func (f *fixture) saveUntilFenced(s processor.Store, l processor.Lease, c processor.Checkpoint) {
	for {
		c.Sequence++
		saved, err := s.Save(f.ctx, f.group, l, c)
		if errors.Is(err, processor.ErrFenced) {
			return
		}
		if err != nil { // also in conflict: who is told so begins again, and need not
			f.Errorf("save: %v, want ErrFenced", err)
			return
		}
		c = saved
	}
}

func (f *fixture) takeOver(s processor.Store, former processor.Lease) processor.Checkpoint {
	l := lease(former.Partition, "new", former.Epoch+1)
	l.Version = former.Version
	won, err := s.Claim(f.ctx, f.group, []processor.Lease{l})
	if err != nil || len(won) != 1 {
		f.Errorf("claim gave %v, %v", won, err)
		return processor.Checkpoint{}
	}
	c, err := s.Begin(f.ctx, f.group, won[0])
	if err != nil {
		f.Errorf("begin: %v", err)
	}
	return c
}
