package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/internal/hubs/balance"
	"github.com/eventyard/eventyard/test/bench/measure"
)

const (
	balancePartitions = 1_000
	balanceInstances  = 100
	balanceRounds     = 10_000 // never needed
)

// measureBalance has a large group become even from several beginnings, on paper, and
// shows how many rounds and moves that takes. The least number of moves is what the instances
// with too many have too many, since nothing else can make it even.
func measureBalance(_ context.Context, b *bench) error {
	b.progress("balance: %d partitions, %d instances", balancePartitions, balanceInstances)
	s := measure.Table{Title: fmt.Sprintf("Balance: %d partitions, %d instances", balancePartitions, balanceInstances),
		Head:  []string{"from", "strategy", "rounds", "free ones claimed", "moves", "least moves"},
		Notes: []string{"Rounds in which all decide on the same view; a move takes two, one to ask and one to take."}}
	even := balance.Converge(instances(balanceInstances), unowned(), false, balanceRounds).Partitions
	for _, from := range []struct {
		name       string
		live       []string
		partitions []balance.Partition
	}{
		{"nobody owns anything", instances(balanceInstances), unowned()},
		{"one owns everything", instances(balanceInstances), ownedBy("instance-0")},
		{"half of them die", instances(balanceInstances / 2), among(instances(balanceInstances/2), even)},
		{"twenty more come", instances(balanceInstances + 20), even},
	} {
		for _, greedy := range []bool{false, true} {
			out := balance.Converge(from.live, from.partitions, greedy, balanceRounds)
			if !out.Even {
				return fmt.Errorf("%s: still uneven after %d rounds", from.name, balanceRounds)
			}
			s.Rows = append(s.Rows, []string{from.name, strategyName(greedy), strconv.Itoa(out.Rounds), strconv.Itoa(out.Claims),
				strconv.Itoa(out.Moves), strconv.Itoa(leastMoves(len(from.live), from.partitions))})
		}
	}
	b.report.table(s)
	return nil
}

func strategyName(greedy bool) string {
	if greedy {
		return "greedy"
	}
	return "balanced"
}

func instances(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("instance-%d", i)
	}
	return ids
}

func unowned() []balance.Partition { return ownedBy("") }

func ownedBy(owner string) []balance.Partition {
	all := make([]balance.Partition, balancePartitions)
	for i := range all {
		all[i] = balance.Partition{ID: strconv.Itoa(i), Owner: owner}
	}
	return all
}

// among frees what the dead own.
func among(live []string, partitions []balance.Partition) []balance.Partition {
	alive := map[string]bool{}
	for _, id := range live {
		alive[id] = true
	}
	all := make([]balance.Partition, len(partitions))
	for i, p := range partitions {
		if all[i] = p; !alive[p.Owner] {
			all[i].Owner = ""
		}
	}
	return all
}

// leastMoves counts what owners have beyond their share, the larger shares going to those
// that have most.
func leastMoves(live int, partitions []balance.Partition) (moves int) {
	counts := map[string]int{}
	for _, p := range partitions {
		if p.Owner != "" {
			counts[p.Owner]++
		}
	}
	share, larger := len(partitions)/live, len(partitions)%live
	for _, n := range counts {
		if n > share && larger > 0 {
			larger--
			n--
		}
		moves += max(0, n-share)
	}
	return moves
}
