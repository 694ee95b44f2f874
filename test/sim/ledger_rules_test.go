package sim

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/processor"
)

// story is a ledger with two instances and partition 0, and short words for what they do.
type story struct {
	*ledger
	a, b *run
	stop context.CancelFunc // ends the context of the last call
}

func newStory() *story {
	w := &world{ledger: newLedger(leaseTime)}
	return &story{ledger: w.ledger, a: &run{world: w, id: "a", n: 1}, b: &run{world: w, id: "b", n: 2}}
}

func (s *story) lease(r *run, epoch int64) processor.Lease {
	return processor.Lease{Partition: "0", Owner: r.id, Epoch: epoch}
}

func (s *story) release(r *run, epoch int64) {
	s.claimed(r, []processor.Lease{{Partition: "0", Epoch: epoch}})
}

// own is everything up to the first call.
func (s *story) own(r *run, epoch, behind int64) {
	s.claimed(r, []processor.Lease{s.lease(r, epoch)})
	s.proved(r, time.Now(), []processor.Lease{s.lease(r, epoch)})
	s.begun(r, s.lease(r, epoch), processor.Checkpoint{Sequence: behind})
}

func (s *story) save(r *run, epoch, sequence int64) {
	s.saved(r, s.lease(r, epoch), processor.Checkpoint{Sequence: sequence})
}

func (s *story) call(r *run, epoch int64, attempt int, from, to int64) *call {
	c := &call{run: r, partition: "0", epoch: epoch, attempt: attempt}
	c.ctx, s.stop = context.WithCancel(context.Background())
	for n := from; n <= to; n++ {
		c.events = append(c.events, event.Event{Sequence: n, Body: []byte(body("0", n))})
	}
	return c
}

// does is a call from its begin to its end.
func (s *story) does(r *run, epoch, from, to int64) {
	c := s.call(r, epoch, 1, from, to)
	s.begin(c)
	s.done(c)
	s.returns(c, nil)
}

// Each rule is broken once, by a story as short as can be, and kept by the same without its end.
func TestTheLedgerKnowsTheRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  rule
		keeps func(s *story)
		harm  func(s *story)
	}{
		{"an event is skipped at the start", ruleGap,
			func(s *story) { s.own(s.a, 1, -1) }, func(s *story) { s.does(s.a, 1, 1, 2) }},
		{"an event is skipped on the way", ruleGap,
			func(s *story) { s.own(s.a, 1, -1); s.does(s.a, 1, 0, 2) }, func(s *story) { s.does(s.a, 1, 4, 5) }},
		{"a call goes back", ruleOrder,
			func(s *story) { s.own(s.a, 1, -1); s.does(s.a, 1, 0, 2) }, func(s *story) { s.does(s.a, 1, 2, 3) }},
		{"a new owner begins before the checkpoint", ruleOrder,
			func(s *story) {
				s.own(s.a, 1, -1)
				s.does(s.a, 1, 0, 2)
				s.save(s.a, 1, 2)
				s.a.disturb()
				s.own(s.b, 2, 2)
			},
			func(s *story) { s.does(s.b, 2, 0, 2) }},
		{"a failed batch does not come again", ruleOrder,
			func(s *story) { s.own(s.a, 1, -1); c := s.call(s.a, 1, 1, 0, 2); s.begin(c); s.returns(c, errWork) },
			func(s *story) { s.begin(s.call(s.a, 1, 1, 0, 2)) }},
		{"an event is not what was published", ruleEvents,
			func(s *story) { s.own(s.a, 1, -1) },
			func(s *story) { c := s.call(s.a, 1, 1, 0, 2); c.events[1].Body = []byte("0/7"); s.begin(c) }},
		{"a batch has a hole", ruleEvents,
			func(s *story) { s.own(s.a, 1, -1) },
			func(s *story) { c := s.call(s.a, 1, 1, 0, 3); c.events = slices.Delete(c.events, 1, 2); s.begin(c) }},
		{"two calls at once", ruleOverlap,
			func(s *story) { s.own(s.a, 1, -1); s.begin(s.call(s.a, 1, 1, 0, 2)) },
			func(s *story) { s.begin(s.call(s.a, 1, 1, 0, 2)) }},
		{"two owners at once, one beyond its lease", ruleTwoOwners,
			func(s *story) { s.a.disturb(); s.own(s.a, 1, -1); s.begin(s.call(s.a, 1, 1, 0, 2)) },
			func(s *story) { time.Sleep(leaseTime + 1); s.own(s.b, 2, -1); s.begin(s.call(s.b, 2, 1, 0, 2)) }},
		{"two owners at once, both well", ruleTwoOwners,
			func(s *story) {
				s.own(s.a, 1, -1)
				s.begin(s.call(s.a, 1, 1, 0, 2))
				s.release(s.a, 1)
				s.own(s.b, 2, -1)
			},
			func(s *story) { s.begin(s.call(s.b, 2, 1, 0, 2)) }},
		{"a call under an epoch that is another's", ruleTwoOwners,
			func(s *story) { s.own(s.a, 1, -1) }, func(s *story) { s.does(s.b, 1, 0, 2) }},
		{"a call beyond the lease", ruleLate,
			func(s *story) { s.own(s.a, 1, -1); time.Sleep(leaseTime) },
			func(s *story) { time.Sleep(time.Nanosecond); s.begin(s.call(s.a, 1, 1, 0, 2)) }},
		{"a context that outlives the lease", ruleLate,
			func(s *story) { s.own(s.a, 1, -1); s.begin(s.call(s.a, 1, 1, 0, 2)) },
			func(s *story) { time.Sleep(leaseTime + 1); s.done(s.accounts["0"].running[0]) }},
		{"a call with an ended context", ruleEnded,
			func(s *story) { s.own(s.a, 1, -1) },
			func(s *story) { c := s.call(s.a, 1, 1, 0, 2); s.stop(); s.begin(c) }},
		{"an acquisition under the same epoch", ruleEpoch,
			func(s *story) { s.own(s.a, 1, -1); s.release(s.a, 1) },
			func(s *story) { s.claimed(s.b, []processor.Lease{s.lease(s.b, 1)}) }},
		{"a lower epoch", ruleEpoch,
			func(s *story) { s.own(s.a, 3, -1); s.release(s.a, 3) },
			func(s *story) { s.claimed(s.b, []processor.Lease{s.lease(s.b, 2)}) }},
		{"taken from one that is well", ruleTaken,
			func(s *story) { s.own(s.a, 1, -1) }, func(s *story) { s.own(s.b, 2, -1) }},
		{"released by another", ruleTaken,
			func(s *story) { s.own(s.a, 1, -1) }, func(s *story) { s.release(s.b, 1) }},
		{"a checkpoint moves back", ruleBack,
			func(s *story) { s.own(s.a, 1, -1); s.does(s.a, 1, 0, 5); s.save(s.a, 1, 5) },
			func(s *story) { s.save(s.a, 1, 4) }},
		{"a checkpoint of an old owner", ruleFence,
			func(s *story) { s.own(s.a, 1, -1); s.does(s.a, 1, 0, 5); s.release(s.a, 1); s.own(s.b, 2, -1) },
			func(s *story) { s.save(s.a, 1, 5) }},
		{"a checkpoint ahead of the work", ruleAhead,
			func(s *story) { s.own(s.a, 1, -1); s.does(s.a, 1, 0, 5); s.save(s.a, 1, 5) },
			func(s *story) { s.save(s.a, 1, 6) }},
		{"a repeat after a graceful end", ruleRepeat,
			func(s *story) { s.own(s.a, 1, -1); s.does(s.a, 1, 0, 5); s.release(s.a, 1); s.own(s.b, 2, -1) },
			func(s *story) { s.does(s.b, 2, 0, 5) }},
		{"a run that stopped owns something", ruleStop,
			func(s *story) { s.own(s.a, 1, -1); s.release(s.a, 1); s.leftBehind(s.a); s.own(s.a, 2, -1) },
			func(s *story) { s.leftBehind(s.a) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStory()
				c.keeps(s)
				if len(s.broken) > 0 {
					t.Fatalf("before any harm: %s: %s", s.broken[0].rule, s.broken[0].text)
				}
				c.harm(s)
				if !slices.ContainsFunc(s.broken, func(b breach) bool { return b.rule == c.rule }) {
					t.Errorf("found %v, want: %s", s.broken, c.rule)
				}
			})
		})
	}
}

// What trouble excuses is no breach.
func TestTheLedgerExcusesWhatTroubleCauses(t *testing.T) {
	for name, notify := range map[string]func(s *story){
		"a crash: taken, and repeated from the checkpoint": func(s *story) {
			s.own(s.a, 1, -1)
			s.does(s.a, 1, 0, 5)
			s.a.gone = true
			s.a.disturb()
			time.Sleep(leaseTime)
			s.own(s.b, 2, -1)
			s.does(s.b, 2, 0, 5)
		},
		"a call that outlives its lease but not its context": func(s *story) {
			s.own(s.a, 1, -1)
			c := s.call(s.a, 1, 1, 0, 5)
			s.begin(c)
			s.a.disturb()
			s.stop()
			time.Sleep(leaseTime + 1)
			s.own(s.b, 2, -1)
			s.does(s.b, 2, 0, 5)
			s.returns(c, context.Canceled)
		},
		"a failed batch comes again": func(s *story) {
			s.own(s.a, 1, -1)
			c := s.call(s.a, 1, 1, 0, 5)
			s.begin(c)
			s.returns(c, errWork)
			s.begin(s.call(s.a, 1, 2, 0, 5))
		},
		"a renewal": func(s *story) {
			s.own(s.a, 1, -1)
			time.Sleep(leaseTime)
			s.claimed(s.a, []processor.Lease{s.lease(s.a, 1)})
			s.proved(s.a, time.Now(), []processor.Lease{s.lease(s.a, 1)})
			time.Sleep(leaseTime)
			s.does(s.a, 1, 0, 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStory()
				if notify(s); len(s.broken) > 0 {
					t.Errorf("%s: %s", s.broken[0].rule, s.broken[0].text)
				}
			})
		})
	}
}
