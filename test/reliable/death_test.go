//go:build linux

package reliable

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/testkit"
)

// brief is the lease of workers that are killed, so that others have their partitions soon.
const brief = 3 * time.Second

// TestWorkerDies kills a worker with SIGKILL in every phase of its work; another takes its place,
// and nothing is lost, out of order, or put away twice. // F2, F3, F4
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	y := startYard(t, true, "")
	points := []string{inRetry, inHalf}
	for _, write := range []string{intent, putAway, checkpointed} {
		points = append(points, "before "+write, "after "+write)
	}
	for i, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dieAndGoOn(newTrial(t, y, fmt.Sprintf("dies-%d", i), 2), point)
		})
	}
	for i, point := range []string{"before " + opening, "after " + opening, "before " + closing, "after " + closing} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dieAtCircuit(newTrial(t, y, fmt.Sprintf("trips-%d", i), 2), point)
		})
	}
	t.Run("again and again by one event", func(t *testing.T) {
		t.Parallel()
		dieOfOneEvent(newTrial(t, y, "deadly", 2))
	})
	t.Run("at each of its writes in turn", func(t *testing.T) {
		t.Parallel()
		dieAtEachWrite(newTrial(t, y, "each-write", 1))
	})
}

// dieAndGoOn has the first of two workers die at a point of its work on broken events.
func dieAndGoOn(r *trial, point string) {
	bad := map[int][]int{0: {7, 8}, 1: {12}}
	r.fill(30, breaking(bad))
	d := duty{MaxBatch: 10, Retries: 2, Delay: 20 * time.Millisecond, Die: point}
	r.start("first", brief, d).died(r.t)
	d.Die = ""
	second := r.start("second", brief, d)
	r.settle(nothing)
	second.stop(r.t)
	v := r.judge()
	v.wantPoisoned(r.t, map[string][]int64{"0": {7, 8}, "1": {12}})
	if point == inRetry {
		r.wantAttemptsGoOn()
	}
	r.t.Logf("%d events were done twice", v.repeats)
}

// wantAttemptsGoOn: the event that was being tried for the second time when its worker died is not
// new to the next one. // F1, F4
func (r *trial) wantAttemptsGoOn() {
	r.t.Helper()
	notes := r.notes()
	var last entry
	for _, e := range notes {
		if e.worker == "first" && e.what == "call" && e.attempt == 2 { // a call of the other partition may have begun meanwhile
			last = e // it died in it
		}
	}
	for _, e := range notes {
		if e.worker == "second" && e.what == "call" && e.partition == last.partition {
			if e.attempt < 2 || e.events[0] != last.events[0] {
				r.t.Errorf("the first worker died in the %v; the second began with %v", last, e)
			}
			return
		}
	}
	r.t.Errorf("nobody took up what the first worker died in, the %v", last)
}

// dieAtCircuit has six broken events and a circuit that opens at the fourth; the first worker dies
// in opening it, or in closing it. Whoever comes finds it as it was stored, and all of the six are
// put away once after it was closed. // F5, F7
func dieAtCircuit(r *trial, point string) {
	r.fill(30, breaking(map[int][]int{0: {3, 6, 9, 12, 15, 18}}))
	d := duty{MaxBatch: 5, Retries: 1, Delay: 20 * time.Millisecond, Failures: 3, Within: time.Minute, Die: point}
	d.ResumeWhenOpen = point == "before "+closing || point == "after "+closing
	r.start("first", brief, d).died(r.t)
	want := map[string]breaker.State{
		"before " + opening: breaker.Closed, "after " + opening: breaker.Open, "before " + closing: breaker.Open, "after " + closing: breaker.Closed,
	}[point]
	found := r.circuit().Record
	if found.State != want && (want != breaker.Closed || found.State != "") {
		r.t.Errorf("the worker died %s, and the circuit is %+v", point, found)
	}
	poisoned := len(r.poisonEvents())
	if poisoned != d.Failures {
		r.t.Errorf("%d events are put away, not %d: the one that opens the circuit stays", poisoned, d.Failures)
	}
	d.Die, d.ResumeWhenOpen = "", false
	second := r.start("second", brief, d)
	if want == breaker.Open {
		r.wantSeenOpen(found, poisoned)
	}
	r.settle(r.closeCircuit)
	second.stop(r.t)
	r.judge().wantPoisoned(r.t, map[string][]int64{"0": {3, 6, 9, 12, 15, 18}})
	r.wantClosed()
}

// wantSeenOpen: the second worker knows of the circuit that the first has opened, takes the
// partitions, and does nothing with them.
func (r *trial) wantSeenOpen(found breaker.Record, poisoned int) {
	r.t.Helper()
	until(r.t, "the second worker to own everything", func() (bool, string) {
		leases, err := r.store.Leases(r.t.Context(), r.group)
		if err != nil {
			return false, err.Error()
		}
		owned := 0
		for _, l := range leases {
			if l.Owner == "second" {
				owned++
			}
		}
		return owned == len(r.sent), fmt.Sprintf("%d partitions", owned)
	})
	want := fmt.Sprintf("open %d %s", found.Term, found.Incident)
	until(r.t, "the second worker to see the circuit", func() (bool, string) {
		for _, e := range r.notes() {
			if e.worker == "second" && e.what == "circuit" && e.rest == want {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.notes())
	})
	for _, e := range r.notes() {
		if e.worker == "second" && e.what == "call" {
			r.t.Errorf("the circuit was open, and there was %v", e)
		}
	}
	if again := len(r.poisonEvents()); again != poisoned {
		r.t.Errorf("%d events were put away while the circuit was open", again-poisoned)
	}
}

// closeCircuit does so if it is open, as an operator who has had enough.
func (r *trial) closeCircuit() {
	r.t.Helper()
	if s := r.circuit().Record.State; s == "" || s == breaker.Closed {
		return
	}
	_, err := circuit.Change(r.t.Context(), r.store, r.group, r.name, func(old breaker.Record) (breaker.Record, bool) {
		return breaker.Resume(old, "operator", "had enough", time.Now())
	})
	testkit.Must(r.t, err)
}

// mostDeaths is how many workers one event may cost. It is found by halves, so it depends on how
// many are called together.
const mostDeaths = 25

// dieOfOneEvent has an event that no worker survives. Somebody starts the worker again each time;
// in the end the event is put away, it alone, and everything else is done. // F2, F4
func dieOfOneEvent(r *trial) {
	r.fill(12, func(partition, n int) string {
		if partition == 0 && n == 6 {
			return "0/6 broken and deadly"
		}
		return fine(partition, n)
	})
	d := duty{MaxBatch: 4, Retries: 1, Delay: 20 * time.Millisecond, Die: inDeadly}
	deaths := 0
	p := r.start("worker", brief, d)
	r.settle(func() {
		if p.alive() {
			return
		}
		p.died(r.t)
		if deaths++; deaths > mostDeaths {
			r.t.Fatalf("%d workers have died of one event: %v", deaths, r.notes())
		}
		p = r.start("worker", brief, d)
	})
	p.stop(r.t)
	r.judge().wantPoisoned(r.t, map[string][]int64{"0": {6}})
	r.t.Logf("one event has cost %d workers", deaths)
}

// dieAtEachWrite is a worker that dies at its first write, the next at its second, and so on until
// one lives: what was broken is put away once. Others may be too: nobody can tell a worker that
// dies by itself from one that dies of an event. // F2, F3, F4
func dieAtEachWrite(r *trial) {
	r.fill(12, breaking(map[int][]int{0: {2, 5, 6}}))
	d := duty{MaxBatch: 4, Retries: 1, Delay: 5 * time.Millisecond}
	deaths := 0
	var p *process
	next := func() {
		d.Die = atNth(deaths + 1)
		p = r.start("worker", brief, d)
	}
	next()
	r.settle(func() {
		if !p.alive() {
			p.died(r.t)
			deaths++
			next()
		}
	})
	r.t.Logf("%d workers have died", deaths)
	_ = p.cmd.Process.Kill() // unless it has died of its last write just now
	<-p.gone
	away := sequences(r.judge().poisoned)["0"]
	for _, want := range []int64{2, 5, 6} {
		found := false
		for _, n := range away {
			found = found || n == want
		}
		if !found {
			r.t.Errorf("put away were %v, without %d", away, want)
		}
	}
}
