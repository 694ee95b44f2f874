//go:build linux

package reliable

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// TestYardDies kills the yard with SIGKILL, again and again, while one function is busy with
// retries, one puts events away, and the circuit of a third is open. Its workers wait for it and go
// on, and the link that was mailed before resumes the third. // F2, F3, F4, F5, F6
func TestYardDies(t *testing.T) {
	t.Parallel()
	mail := startMail(t)
	y := startYard(t, true, mail.settings())
	d := newDying(t, y)
	workers := d.startWorkers()
	d.waitForPhases(0)
	link := d.waitForMail(mail)
	for kill := range 3 {
		d.waitForPhases(kill)
		y.killAndStart(t)
	}
	d.tripped.wantOpenStill()
	d.tripped.resume(link)
	for _, r := range d.all() {
		r.settle(nothing)
	}
	for _, p := range workers {
		p.stop(t)
	}
	d.judge()
}

// dying is what runs while the yard is killed.
type dying struct {
	t                          *testing.T
	yard                       *yard
	retrying, putting, tripped *trial
	duties                     []duty
	incident                   string // of the third's circuit
}

const puttingAway = 120

func newDying(t *testing.T, y *yard) *dying {
	t.Helper()
	d := &dying{t: t, yard: y}
	d.retrying = newTrial(t, y, "retrying", 2)
	d.retrying.fill(40, breaking(map[int][]int{0: {5}}))
	d.putting = newTrial(t, y, "putting", 2)
	d.putting.fill(puttingAway, func(partition, n int) string {
		if n%2 == partition {
			return fmt.Sprintf("%d/%d broken", partition, n)
		}
		return fine(partition, n)
	})
	d.tripped = newTrial(t, y, "tripped", 2)
	d.tripped.fill(30, breaking(map[int][]int{0: {3, 6, 9, 12, 15, 18}}))
	d.duties = []duty{
		{Function: "retrying", Hub: "retrying", MaxBatch: 10, Retries: 10, Delay: 20 * time.Millisecond},
		{Function: "putting", Hub: "putting", MaxBatch: 3},
		{Function: "tripped", Hub: "tripped", MaxBatch: 5, Retries: 1, Delay: 20 * time.Millisecond, Failures: 3, Within: time.Minute},
	}
	return d
}

func (d *dying) all() []*trial { return []*trial{d.retrying, d.putting, d.tripped} }

// startWorkers starts two, each with all three functions.
func (d *dying) startWorkers() (all []*process) {
	d.t.Helper()
	dir := d.t.TempDir()
	for _, name := range []string{"w1", "w2"} {
		file := filepath.Join(dir, name+".notes")
		for _, r := range d.all() {
			r.dir = dir
			r.workers = append(r.workers, name)
		}
		all = append(all, startWorker(d.t, job{Name: name, Yard: d.yard.connection, Ledger: file, Lease: steady, Duties: d.duties}))
	}
	return all
}

// waitForPhases waits until each function is in the midst of its trouble, and further than the last
// time.
func (d *dying) waitForPhases(kill int) {
	d.t.Helper()
	found := ""
	until(d.t, "all functions to be in trouble", func() (bool, string) {
		attempts := 0
		for _, e := range d.retrying.notes() {
			if e.what == "fail" && e.function == d.retrying.name {
				attempts = max(attempts, e.attempt)
			}
		}
		poisoned := 0
		for i := range 2 {
			info, err := d.yard.client.Hub(d.putting.poison()).Partition(d.t.Context(), id(i))
			if err != nil {
				return false, err.Error()
			}
			poisoned += int(info.Last + 1)
		}
		state := d.tripped.circuit().Record
		if state.State == breaker.Open && d.incident == "" {
			d.incident = state.Incident
		}
		ready := attempts >= 2+2*kill && poisoned > puttingAway*(kill+1)/5 && state.State == breaker.Open
		found = fmt.Sprintf("attempt %d, %d poison events, circuit %s", attempts, poisoned, state.State)
		return ready, found
	})
	d.t.Logf("in trouble: %s", found)
	if s := d.tripped.circuit().Record; s.Incident != d.incident {
		d.t.Errorf("the circuit is not open as it was: %+v", s)
	}
}

// waitForMail gives the link of the mail about the open circuit.
func (d *dying) waitForMail(mail *mailServer) (link string) {
	d.t.Helper()
	until(d.t, "a mail with a link", func() (bool, string) {
		var subjects []string
		link, subjects = mail.find(d.t, d.tripped.name)
		return link != "", fmt.Sprintf("%q", subjects)
	})
	return link
}

// wantOpenStill: nobody has closed the circuit, so it is open.
func (r *trial) wantOpenStill() {
	r.t.Helper()
	if s := r.circuit().Record; s.State != breaker.Open {
		r.t.Errorf("after the yard was killed the circuit is %+v", s)
	}
}

func (d *dying) judge() {
	d.t.Helper()
	v := d.retrying.judge()
	v.wantPoisoned(d.t, map[string][]int64{"0": {5}})
	for _, l := range v.poisoned {
		if l.attempts < 11 {
			d.t.Errorf("the poison event says %d attempts", l.attempts)
		}
	}
	want := map[string][]int64{}
	for n := range int64(puttingAway) {
		want[fmt.Sprint(n%2)] = append(want[fmt.Sprint(n%2)], n)
	}
	d.putting.judge().wantPoisoned(d.t, want)
	d.tripped.judge().wantPoisoned(d.t, map[string][]int64{"0": {3, 6, 9, 12, 15, 18}})
	d.tripped.wantClosed()
	for _, r := range d.all() {
		d.t.Logf("%s: %d notes of lost leases", r.name, lostLeases(r.notes()))
	}
}
