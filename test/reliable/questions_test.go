//go:build linux

package reliable

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

const (
	partitions = 8
	instances  = 3
	steady     = 6 * time.Second // the lease of workers that nobody kills
)

// pace is how fast a question is asked.
type pace struct {
	rate    int
	lasting time.Duration
}

// F2 to F8: TestAHundredASecond asks the three questions that everybody has who processes events in
// order: what does a broken event do, what does bad code do, and what does a bad day of something
// else do?
func TestAHundredASecond(t *testing.T) {
	t.Parallel()
	mail := startMail(t)
	y := startYard(t, true, mail.settings())
	p := pace{100, 15 * time.Second}
	t.Run("a broken event", func(t *testing.T) { t.Parallel(); askBroken(t, y, p) })
	t.Run("code that panics", func(t *testing.T) { t.Parallel(); askPanics(t, y, p, duty{Each: true, Panics: 100}) })
	t.Run("a downstream that is down", func(t *testing.T) { t.Parallel(); askDown(t, y, mail, p) })
}

// F2 to F8: TestTenThousandASecond asks the same at a hundred times the pace, one question after
// the other.
func TestTenThousandASecond(t *testing.T) {
	mail := startMail(t)
	y := startYard(t, false, mail.settings())
	p := pace{10_000, 6 * time.Second}
	t.Run("a broken event", func(t *testing.T) { askBroken(t, y, p) })
	t.Run("code that panics", func(t *testing.T) { askPanics(t, y, p, duty{Panics: 50}) })
	t.Run("a downstream that is down", func(t *testing.T) { askDown(t, y, mail, p) })
}

// fleet starts the instances of a trial's function; stop ends them gracefully.
func (r *trial) fleet(d duty) (stop func()) {
	r.t.Helper()
	var all []*process
	for i := range instances {
		all = append(all, r.start(fmt.Sprintf("w%d", i+1), steady, d))
	}
	return func() {
		r.t.Helper()
		for _, p := range all {
			p.stop(r.t)
		}
	}
}

func nothing() {}

// askBroken has a few events in two of the partitions that nobody can handle.
func askBroken(t *testing.T, y *yard, p pace) {
	r := newTrial(t, y, fmt.Sprintf("broken-%d", p.rate), partitions)
	bad := map[int][]int{0: {20, 21, 120}, 1: {50}}
	stop := r.fleet(duty{MaxBatch: 100, Retries: 3, Delay: 50 * time.Millisecond, Failures: 100, Within: 30 * time.Second})
	r.load(p.rate, p.lasting, breaking(bad))
	sent := now()
	r.settle(nothing)
	stop()
	v := r.judge()
	v.wantPoisoned(t, map[string][]int64{"0": {20, 21, 120}, "1": {50}})
	for _, l := range v.poisoned {
		if l.attempts < 4 || l.event.Properties["poison-reason"] != "this event is broken" || string(l.event.Body) != fmt.Sprintf("%s/%d broken", l.partition, l.sequence) {
			t.Errorf("poison event of %s/%d: %d attempts, %v, %q", l.partition, l.sequence, l.attempts, l.event.Properties, l.event.Body)
		}
	}
	r.wantOnce(v)
	r.wantClosed()
	r.logFinish(v, sent, func(partition int) bool { return len(bad[partition]) > 0 })
}

// askPanics has code that fails now and then, whatever the event.
func askPanics(t *testing.T, y *yard, p pace, d duty) {
	r := newTrial(t, y, fmt.Sprintf("panics-%d", p.rate), partitions)
	d.MaxBatch, d.Retries, d.Delay, d.Failures, d.Within = 100, 5, 10*time.Millisecond, 100, 30*time.Second
	stop := r.fleet(d)
	r.load(p.rate, p.lasting, fine)
	sent := now()
	r.settle(nothing)
	stop()
	v := r.judge()
	v.wantPoisoned(t, map[string][]int64{})
	r.wantOnce(v)
	r.wantClosed()
	r.logFinish(v, sent, func(int) bool { return true })
	panics := 0
	for _, e := range r.notes() {
		if e.what == "panic" {
			panics++
		}
	}
	if panics == 0 {
		t.Error("no call has panicked, so nothing was proven")
	}
	t.Logf("%s: %d calls panicked", r.name, panics)
}

// wantOnce: where nobody died and no lease was lost, nothing is done twice.
func (r *trial) wantOnce(v verdict) {
	r.t.Helper()
	lost := lostLeases(r.notes())
	r.t.Logf("%s: %d events, %d put away, %d repeats, %d notes of lost leases", r.name, v.events, len(v.poisoned), v.repeats, lost)
	if v.repeats > 0 && lost == 0 {
		r.t.Errorf("%d events were done twice, though nobody died", v.repeats)
	}
}

func (r *trial) wantClosed() {
	r.t.Helper()
	if s := r.circuit().Record.State; s != "" && s != breaker.Closed {
		r.t.Errorf("the circuit of %s is %s", r.name, s)
	}
}

// logFinish tells, for people to look at, how long after the last event was sent partitions with
// trouble and those without were done. // F8
func (r *trial) logFinish(v verdict, sent int64, troubled func(partition int) bool) {
	var with, without time.Duration
	for i, at := range v.finished {
		if troubled(i) {
			with = max(with, since(at, sent))
		} else {
			without = max(without, since(at, sent))
		}
	}
	r.t.Logf("%s: done %v after the last was sent; partitions without trouble %v", r.name, with, without)
}

func id(partition int) string { return strconv.Itoa(partition) }
