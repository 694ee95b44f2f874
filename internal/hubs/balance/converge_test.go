package balance

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

func instances(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("instance-%03d", i))
	}
	return ids
}

// owned gives partitions to the instances in turn.
func owned(n int, by ...string) []Partition {
	parts := make([]Partition, n)
	for i := range parts {
		parts[i].ID = fmt.Sprint(i)
		if len(by) > 0 {
			parts[i].Owner = by[i%len(by)]
		}
	}
	return parts
}

// leave frees what the others do not own.
func leave(parts []Partition, live []string) []Partition {
	for i := range parts {
		if !slices.Contains(live, parts[i].Owner) {
			parts[i].Owner = ""
		}
	}
	return parts
}

// P2: one thousand partitions, one hundred instances.
func TestAThousandPartitionsAndAHundredInstancesBecomeEven(t *testing.T) {
	const partitions = 1000
	all := instances(0, 100)
	for _, c := range []struct {
		name             string
		live             []string
		begin            []Partition
		balanced, greedy int // rounds
	}{
		{"nobody owned any", all, owned(partitions), 1, 1},
		{"one owned all", all, owned(partitions, all[0]), 11, 2},
		{"half of the instances leave", all[:50], leave(owned(partitions, all...), all[:50]), 1, 1},
		{"twenty join eighty", all, owned(partitions, all[:80]...), 11, 2},
		{"one joins ninety-nine", all, owned(partitions, all[:99]...), 11, 2},
		{"thirty leave and thirty others join", instances(30, 130), leave(owned(partitions, all...), all[30:]), 1, 1},
	} {
		for _, greedy := range []bool{false, true} {
			bound := c.balanced
			if greedy {
				bound = c.greedy
			}
			t.Run(fmt.Sprintf("%s, greedy %v", c.name, greedy), func(t *testing.T) {
				out := Converge(c.live, c.begin, greedy, 50)
				t.Logf("%d rounds, %d claims, %d moves", out.Rounds, out.Claims, out.Moves)
				if n := counts(c.live, out.Partitions); !out.Even || spread(n) > 1 {
					t.Fatalf("even %v, with %v", out.Even, n)
				}
				if least := fewest(c.live, c.begin); out.Rounds > bound || out.Moves != least {
					t.Errorf("%d rounds and %d moves, want at most %d and exactly %d", out.Rounds, out.Moves, bound, least)
				}
			})
		}
	}
}

// fewest is leastMoves for many instances: the larger shares are best given to those that have
// most, which leastMoves proves for few.
func fewest(live []string, partitions []Partition) int {
	n := counts(live, partitions)
	by := slices.Clone(live)
	slices.SortFunc(by, func(a, b string) int { return cmp.Compare(n[b], n[a]) })
	moves := 0
	for i, id := range by {
		share := len(partitions) / len(live)
		if i < len(partitions)%len(live) {
			share++
		}
		moves += max(0, n[id]-share)
	}
	return moves
}
