//go:build linux

package reliable

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// TestWorkerFreezes stops a worker in the worst moments for longer than its lease, as a machine
// does that is moved or swaps. When it goes on, another has its partitions and has finished what it
// had begun: it is too late, and does no harm. // F2, F3, F4
func TestWorkerFreezes(t *testing.T) {
	t.Parallel()
	y := startYard(t, true, "")
	for i, point := range []string{inHalf, "before " + intent, "after " + intent, "before " + putAway, "before " + checkpointed} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			freezeAndGoOn(newTrial(t, y, fmt.Sprintf("freezes-%d", i), 2), point)
		})
	}
}

func freezeAndGoOn(r *trial, point string) {
	r.fill(30, breaking(map[int][]int{0: {7, 8}, 1: {12}}))
	d := duty{MaxBatch: 10, Retries: 2, Delay: 20 * time.Millisecond, Die: point, Freeze: true}
	first := r.start("first", brief, d)
	until(r.t, "the first worker to freeze", func() (bool, string) {
		for _, e := range r.notes() {
			if e.what == "freeze" {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.notes())
	})
	d.Die = ""
	second := r.start("second", brief, d)
	r.settle(nothing)
	testkit.Must(r.t, first.cmd.Process.Signal(syscall.SIGCONT))
	r.fill(10, fine)
	r.waitForShares("first", "second")
	r.settle(nothing)
	first.stop(r.t)
	second.stop(r.t)
	v := r.judge()
	v.wantPoisoned(r.t, map[string][]int64{"0": {7, 8}, "1": {12}})
	r.t.Logf("%d events were done twice", v.repeats)
}

// waitForShares waits until each of the workers has a partition: they know of each other, and are
// well.
func (r *trial) waitForShares(names ...string) {
	r.t.Helper()
	until(r.t, fmt.Sprintf("a share for each of %v", names), func() (bool, string) {
		leases, err := r.store.Leases(r.t.Context(), r.group)
		if err != nil {
			return false, err.Error()
		}
		owned := map[string]int{}
		for _, l := range leases {
			owned[l.Owner]++
		}
		for _, name := range names {
			if owned[name] == 0 {
				return false, fmt.Sprint(owned)
			}
		}
		return true, ""
	})
}
