package circuit

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/sleep"
)

// probe is this member's part in a half-open circuit.
//
//	none ──▶ offered ──▶ taken ──▶ ended ──▶ none
//	  the record names      by a       Probed or   the record
//	  this instance         waiter     Returned    is another
//
// It is a matter of one term: whoever changes the record, be it an operator, takes the probe away,
// and what comes of it does not count any more. A record that names this instance although it has
// not asked (an answer was lost, or it is an earlier life's) is taken up all the same: no other
// instance has this id.
type probe struct {
	stage stage
	term  int64
	// since is when it was taken, seen when the others last heard that it is under way.
	since, seen time.Time
	// tries is the event; nil: nobody has said.
	tries *breaker.Event
	// How it ended: not tried, or with ok and reason.
	untried, ok bool
	reason      string
}

type stage int

const (
	none    stage = iota
	offered       // nobody has it yet
	taken
	ended // and to be stored
)

// A prober whose call takes long tells the others now and then that it lives, or they would take
// its place and what it finds out would be for nothing; not for ever, as the call may hang.
const (
	proveEvery = breaker.ProbeDeadline / 4
	proveUntil = 400 * time.Second
	// triesAfter is how long a probe lasts of which the others hear what it tries: most are over by then.
	triesAfter = 250 * time.Millisecond
)

// after is the probe when the record is of a new term.
func (p probe) after(r breaker.Record, self string) probe {
	if r.State != breaker.HalfOpen || r.Prober != self {
		return probe{}
	}
	if p.stage != none && p.term == r.Term {
		return p
	}
	return probe{stage: offered, term: r.Term}
}

// underWay: it is this member's to end it, and not to be taken over by itself as if it had died.
func (p probe) underWay() bool {
	return p.stage == offered || p.stage == ended || (p.stage == taken && time.Since(p.since) < proveUntil)
}

// proofDue is when the others are to hear again that the probe is under way; false: they are not.
func (p probe) proofDue() (time.Time, bool) {
	return p.seen.Add(proveEvery), p.stage == taken && time.Since(p.since) < proveUntil
}

// record is what the probe makes of the record that it is about; false: nothing yet, or nothing any
// more: with another record there would be another probe, or none.
func (p probe) record(r breaker.Record, self string) (breaker.Record, bool) {
	switch now := time.Now(); {
	case p.stage != ended:
		return r, false
	case p.untried:
		return breaker.Returned(r, self, now), true
	default:
		return breaker.Probed(r, p.ok, self, p.reason, now), true
	}
}

// Probed tells how the probe ended, and returns once that is stored or another has changed the
// circuit since. If ctx ends before, Run goes on trying to store it.
func (m *Member) Probed(ctx context.Context, p Pass, ok bool, s breaker.Sample) error {
	reason := "a probe succeeded"
	if !ok {
		reason = "the probe failed: " + s.Error
	}
	if !m.end(p, probe{ok: ok, reason: reason}) {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, m.cfg.Poll) {
		err := m.settle(ctx)
		if err == nil {
			return nil
		}
		if sleep.For(ctx, pause, nil) != nil {
			return fmt.Errorf("store the end of a probe of circuit %s: %w: it is tried further", m.cfg.Function, err)
		}
	}
}

// Trying tells which event a probe tries, for the others to see if it takes long. It does not wait until they do.
func (m *Member) Trying(p Pass, partition string, sequence int64) {
	if m.tries(p, breaker.Event{Partition: partition, Sequence: sequence}) {
		m.wakeRun()
	}
}

// Returned gives a probe back untried. Run stores that; where it has ended, this does, and takes a
// moment.
func (m *Member) Returned(p Pass) {
	if !m.end(p, probe{untried: true}) {
		return
	}
	m.wakeRun()
	if m.running.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	if err := m.settle(ctx); err != nil {
		m.cfg.Log.Warn("a probe could not be given back, another instance takes it later", "after", breaker.ProbeDeadline, "error", err)
	}
}

// settle stores how the probe ended, if there is one that has.
func (m *Member) settle(ctx context.Context) error {
	if m.probing().stage != ended {
		return nil
	}
	return m.change(ctx, func(r breaker.Record) (breaker.Record, bool) { return m.probing().record(r, m.cfg.Instance) })
}

// prove writes the record again as it is, for the others to see that the prober lives, and what it tries.
func (m *Member) prove(ctx context.Context) error {
	if due, ok := m.probing().proofDue(); !ok || time.Now().Before(due) {
		return nil
	}
	_, before := m.present()
	err := m.change(ctx, func(r breaker.Record) (breaker.Record, bool) {
		_, version := m.present()
		now := m.probing()
		r.Tries = now.tries
		return r, version == before && now.stage == taken
	})
	if err == nil {
		m.proven()
	}
	return err
}
