package circuit

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// traffic is what all members have asked of the store.
func traffic(all []*played) (reads, writes int) {
	for _, m := range all {
		reads += m.store.count("entries circuit") + m.store.count("entries failures")
		writes += m.store.count("put circuit") + m.store.count("put failures") + m.store.count("remove failures")
	}
	return reads, writes
}

// F5, F8: fifty instances with something to do, whose circuit opens: one of them writes that, all
// read it, and then there is silence.
func TestAnOpenCircuitIsQuiet(t *testing.T) {
	inWorld(t, breaker.Policy{Failures: 50, Within: 30 * time.Second}, func(t *testing.T, w *world) {
		var all []*played
		for i := range 50 {
			all = append(all, w.start(fmt.Sprint("m", i)))
		}
		for _, m := range all {
			m.failed(1, false)
		}
		pass(time.Second)
		all[7].failed(1, true)
		for _, m := range all {
			m.wait()
			m.wait()
		}
		pass(time.Second)
		reads, writes := traffic(all)
		pass(time.Minute)
		for _, m := range all {
			m.is(breaker.Open)
		}
		moreReads, moreWrites := traffic(all)
		// Each looks at both every ten seconds.
		if r, w := moreReads-reads, moreWrites-writes; r > 50*2*7 || w > 0 {
			t.Errorf("in a minute of an open circuit there were %d reads and %d writes", r, w)
		}
	})
}

// F7, F8: when it is time to try an event each of fifty instances wants to, once.
func TestFiftyThatWouldProbeAreQuiet(t *testing.T) {
	inWorld(t, probes, func(t *testing.T, w *world) {
		first := w.start("first")
		var all []*played
		for i := range 50 {
			m := w.start(fmt.Sprint("m", i))
			for _, op := range []string{"put circuit", "entries circuit", "entries failures"} {
				m.store.slow(op, 10*time.Millisecond)
			}
			all = append(all, m)
		}
		first.failed(6, true) // and has nothing to try
		pass(time.Second)
		var waiters []*waiter
		for _, m := range all {
			waiters = append(waiters, m.wait())
		}
		reads, writes := traffic(all)
		pass(11 * time.Second)
		testkit.Equal(t, len(passedOf(waiters)), 1, "have come through")
		moreReads, moreWrites := traffic(all)
		if r, w := moreReads-reads, moreWrites-writes; r > 50*2*4 || w > 50 {
			t.Errorf("there were %d reads and %d writes", r, w)
		}
	})
}

// F8: partitions that put away at the same time share what is read after all of them have asked.
func TestQuestionsShareAnAnswer(t *testing.T) {
	inWorld(t, many, func(t *testing.T, w *world) {
		a := w.start("a")
		a.store.slow("entries circuit", 2*time.Second)
		began, answers := time.Now(), make(chan time.Duration, 16)
		for range cap(answers) {
			go func() {
				if may, _, err := a.MayPutAway(t.Context(), AnyTerm, 1); may != 1 || err != nil {
					t.Errorf("may put away: %v, %v", may, err)
				}
				answers <- time.Since(began)
			}()
		}
		for range cap(answers) {
			if d := <-answers; d > 6*time.Second {
				t.Errorf("an answer came after %v", d)
			}
		}
		w.hold()
		a.mayPutAway(false)
	})
}
