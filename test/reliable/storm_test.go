//go:build linux

package reliable

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var stormy = flag.Duration("reliable.storm", 15*time.Second, "how long storms last")

// TestStorm has events that keep coming, some of them broken, and workers that are killed with
// SIGKILL in the midst of calls, with others that come in their place. // F2, F3, F4, F8
func TestStorm(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "storm", duty{MaxBatch: 20, Retries: 4, Delay: 10 * time.Millisecond, Takes: 20 * time.Millisecond})
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		s.trial.load(180, *stormy, stormBody)
	}()
	for {
		s.man()
		select {
		case <-s.next(2500 * time.Millisecond):
			s.killWorker()
		case <-loaded:
			s.calmDown()
			return
		}
	}
}

// TestHurricane kills the yard as well, and has a circuit that opens again and again, which an
// operator closes each time. // F2, F3, F4, F5, F7
func TestHurricane(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "hurricane", duty{
		MaxBatch: 20, Retries: 2, Delay: 10 * time.Millisecond, Takes: 20 * time.Millisecond, Failures: 3, Within: 10 * time.Second,
	})
	s.trial.fill(int(stormy.Seconds()*25), stormBody)
	over, yards := time.After(*stormy), 0
	for {
		s.man()
		select {
		case <-s.next(1500 * time.Millisecond):
		case <-over:
			t.Logf("the yard was killed %d times", yards)
			s.calmDown()
			return
		}
		if s.dice.IntN(3) == 0 {
			s.trial.yard.killAndStart(t)
			yards++
		} else {
			s.killWorker()
		}
		s.trial.closeCircuit()
	}
}

// storm is a trial whose workers are killed at random.
type storm struct {
	trial   *trial
	duty    duty
	dice    *rand.Rand
	workers []*process
	kills   int
}

func newStorm(t *testing.T, name string, d duty) *storm {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &storm{
		trial: newTrial(t, startYard(t, true, ""), name, 6), duty: d, dice: rand.New(rand.NewPCG(seed, 0)),
	}
}

// isBad tells which events are broken: some in half of the partitions, now and then two in a row.
func isBad(partition, n int) bool { return partition%2 == 0 && (n%(23+partition) == 5 || n%97 == 6) }

func stormBody(partition, n int) string {
	if isBad(partition, n) {
		return fmt.Sprintf("%d/%d broken", partition, n)
	}
	return fine(partition, n)
}

// man sees to it that there are three workers.
func (s *storm) man() {
	for len(s.workers) < 3 {
		name := fmt.Sprintf("w%d", len(s.trial.workers))
		s.workers = append(s.workers, s.trial.start(name, brief, s.duty))
	}
}

// next is when the next kill is due.
func (s *storm) next(most time.Duration) <-chan time.Time {
	return time.After(300*time.Millisecond + time.Duration(s.dice.Int64N(int64(most))))
}

func (s *storm) killWorker() {
	victim := s.dice.IntN(len(s.workers))
	s.workers[victim].kill(s.trial.t)
	s.workers = append(s.workers[:victim], s.workers[victim+1:]...)
	s.kills++
}

// calmDown lets the living finish, and judges.
func (s *storm) calmDown() {
	r := s.trial
	r.t.Helper()
	s.man()
	r.settle(r.closeCircuit)
	for _, p := range s.workers {
		p.stop(r.t)
	}
	v := r.judge()
	want := map[string][]int64{}
	for partition, end := range r.ends() {
		for n := range end {
			if isBad(partition, int(n)) {
				want[id(partition)] = append(want[id(partition)], n)
			}
		}
	}
	v.wantPoisoned(r.t, want)
	incidents := map[string]bool{}
	for _, e := range r.notes() {
		if e.what == "circuit" && strings.HasPrefix(e.rest, "open ") {
			incidents[e.rest] = true
		}
	}
	r.t.Logf("%d workers were killed; the circuit opened %d times; of %d events %d were put away, and %d done twice",
		s.kills, len(incidents), v.events, len(v.poisoned), v.repeats)
}
