//go:build linux

package reliable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestInTheMiddle are things that people do to functions that are in trouble. // F2, F3, F4, F7
func TestInTheMiddle(t *testing.T) {
	t.Parallel()
	y := startYard(t, true, "")
	for i, c := range []struct {
		name string
		does func(*trial)
	}{
		{"a worker is stopped while it waits for a retry", stopInRetry},
		{"another comes while all partitions wait for a retry", joinInRetry},
		{"a worker is stopped while the circuit is open", stopWhileOpen},
		{"the poison hub is gone for a while", loseThePoisonHub},
		{"the circuit probes until all is well", probe},
		{"the one that probes dies", dieInProbe},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.does(newTrial(t, y, fmt.Sprintf("middle-%d", i), 2))
		})
	}
}

// waiting is a function whose first events fail, and whose retry is far off.
func (r *trial) waiting() duty {
	r.fill(10, breaking(map[int][]int{0: {0}, 1: {0}}))
	return duty{MaxBatch: 5, Retries: 2, Delay: 5 * time.Minute}
}

// waitForFails waits until each partition has had so many calls that failed, in all workers.
func (r *trial) waitForFails(n int) {
	r.t.Helper()
	until(r.t, fmt.Sprintf("%d failed calls in each partition", n), func() (bool, string) {
		fails := map[string]int{}
		for _, e := range r.notes() {
			if e.what == "fail" {
				fails[e.partition]++
			}
		}
		return fails["0"] >= n && fails["1"] >= n, fmt.Sprint(fails)
	})
}

// stopInRetry: it ends at once, and who comes next goes on with the second attempt, without waiting
// for a lease.
func stopInRetry(r *trial) {
	d := r.waiting()
	first := r.start("first", time.Minute, d)
	r.waitForFails(1)
	began := time.Now()
	first.stop(r.t)
	r.t.Logf("it stopped in %v", time.Since(began))
	second := r.start("second", time.Minute, d)
	r.waitForFails(2)
	r.wantAttempt("second", 2)
	second.stop(r.t)
	r.wantNothingDone()
}

// joinInRetry: a partition that waits for minutes is handed over at once.
func joinInRetry(r *trial) {
	d := r.waiting()
	first := r.start("first", time.Minute, d)
	r.waitForFails(1)
	began := time.Now()
	second := r.start("second", time.Minute, d)
	r.waitForShares("first", "second")
	r.t.Logf("the second had its share after %v", time.Since(began))
	until(r.t, "the second to go on", func() (bool, string) {
		for _, e := range r.notes() {
			if e.worker == "second" && e.what == "fail" {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.notes())
	})
	r.wantAttempt("second", 2)
	first.stop(r.t)
	second.stop(r.t)
	r.wantNothingDone()
}

// wantAttempt: the first call of a worker in each partition is that attempt.
func (r *trial) wantAttempt(worker string, attempt int) {
	r.t.Helper()
	seen := map[string]bool{}
	for _, e := range r.notes() {
		if e.worker != worker || e.what != "call" || seen[e.partition] {
			continue
		}
		if seen[e.partition] = true; e.attempt != attempt || e.events[0] != 0 {
			r.t.Errorf("%s began with %v, not with attempt %d of event 0", worker, e, attempt)
		}
	}
}

// wantNothingDone: no event was done or put away, and no checkpoint is there.
func (r *trial) wantNothingDone() {
	r.t.Helper()
	for _, e := range r.notes() {
		if e.what == "ok" {
			r.t.Errorf("there was %v", e)
		}
	}
	if n := len(r.poisonEvents()); n > 0 {
		r.t.Errorf("%d events were put away", n)
	}
	checkpoints, err := r.store.Checkpoints(r.t.Context(), r.group)
	testkit.Must(r.t, err)
	for _, c := range checkpoints {
		if c.Sequence >= 0 {
			r.t.Errorf("there is a checkpoint: %+v", c)
		}
	}
}

// stopWhileOpen: it ends at once and gives its partitions away; who comes next keeps still until
// the circuit is closed.
func stopWhileOpen(r *trial) {
	r.fill(30, breaking(map[int][]int{0: {3, 6, 9, 12}}))
	d := duty{MaxBatch: 5, Retries: 1, Delay: 20 * time.Millisecond, Failures: 2, Within: time.Minute}
	first := r.start("first", time.Minute, d)
	until(r.t, "an open circuit", func() (bool, string) {
		s := r.circuit().Record
		return s.State == breaker.Open, fmt.Sprintf("%+v", s)
	})
	first.stop(r.t)
	found, poisoned := r.circuit().Record, len(r.poisonEvents())
	if poisoned != d.Failures {
		r.t.Errorf("%d events are put away, not %d: the one that opens the circuit stays", poisoned, d.Failures)
	}
	second := r.start("second", time.Minute, d)
	r.wantSeenOpen(found, poisoned)
	r.settle(r.closeCircuit)
	second.stop(r.t)
	r.judge().wantPoisoned(r.t, map[string][]int64{"0": {3, 6, 9, 12}})
}

// loseThePoisonHub: while there is no place for a poison event its partition waits, and the other
// goes on.
func loseThePoisonHub(r *trial) {
	d := duty{MaxBatch: 5, Retries: 1, Delay: 20 * time.Millisecond}
	p := r.start("worker", brief, d)
	r.fill(10, breaking(map[int][]int{0: {4}}))
	r.settle(nothing)
	r.yard.cli(r.t, "hub", "delete", r.poison(), "--yes")
	r.fill(10, breaking(map[int][]int{0: {5}}))
	until(r.t, "the other partition to be done", func() (bool, string) {
		at := r.yard.position(r.t, r.name, groupName).checkpoints()
		return at["1"] == 19, fmt.Sprint(at)
	})
	r.waitForNote("error", "put")
	if at := r.yard.position(r.t, r.name, groupName).checkpoints(); at["0"] > 14 {
		r.t.Errorf("the checkpoint is at %d, and event 15 is nowhere", at["0"])
	}
	r.yard.cli(r.t, "hub", "create", r.poison(), "--partitions", "2")
	r.settle(nothing)
	p.stop(r.t)
	// The poison event of the fourth went with the hub it was in.
	testkit.Equal(r.t, fmt.Sprint(sequences(r.poisoned())), "map[0:[15]]", "put away")
}

func (r *trial) waitForNote(what, text string) {
	r.t.Helper()
	until(r.t, "a note of "+what+" with "+text, func() (bool, string) {
		all := r.notes()
		for _, e := range all {
			if e.what == what && strings.Contains(e.rest, text) {
				return true, ""
			}
		}
		return false, fmt.Sprint(all[max(0, len(all)-5):])
	})
}

// probe has a service that is down; the circuit opens, tries one event now and then, and closes by
// itself once it is back. // F7
func probe(r *trial) {
	down := startService(r.t)
	down.stop()
	r.fill(30, fine)
	d := duty{MaxBatch: 5, Retries: 1, Delay: 20 * time.Millisecond, Failures: 4, Within: time.Minute, Probe: 500 * time.Millisecond, Downstream: down.addr}
	first, second := r.start("first", brief, d), r.start("second", brief, d)
	until(r.t, "a probe or two that failed", func() (bool, string) {
		s, putting := r.circuit().Record, r.beingPutAway() // as they may be which were decided on before it opened
		return s.Trips >= 2 && putting == 0, fmt.Sprintf("%+v, %d put-aways", s, putting)
	})
	poisoned := len(r.poisonEvents())
	down.start()
	r.settle(nothing)
	first.stop(r.t)
	second.stop(r.t)
	v := r.judge()
	if len(v.poisoned) != poisoned {
		r.t.Errorf("%d events were put away before the circuit opened, and %d after", poisoned, len(v.poisoned)-poisoned)
	}
	r.wantClosed()
	r.t.Logf("%d events were put away before the circuit opened", poisoned)
}

// dieInProbe has the instance killed that tries an event; another one tries in its place, if only
// after a while. // F7
func dieInProbe(r *trial) {
	if !*long {
		r.t.Skip("a prober is given two minutes; -reliable.long waits for that")
	}
	down := startService(r.t)
	down.stop()
	r.fill(30, fine)
	d := duty{
		MaxBatch: 5, Retries: 1, Delay: 20 * time.Millisecond, Failures: 4, Within: time.Minute, Probe: 500 * time.Millisecond, Downstream: down.addr, Die: inProbe,
	}
	r.start("first", brief, d).died(r.t)
	down.start()
	poisoned := len(r.poisonEvents())
	d.Die = ""
	began := time.Now()
	second := r.start("second", brief, d)
	r.settle(nothing)
	second.stop(r.t)
	r.t.Logf("all was done %v after the prober had died", time.Since(began))
	if v := r.judge(); len(v.poisoned) != poisoned {
		r.t.Errorf("%d events were put away before the circuit opened, and %d after", poisoned, len(v.poisoned)-poisoned)
	}
	r.wantClosed()
}
