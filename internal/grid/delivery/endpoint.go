package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// endpoint is what is known of one address that lanes send to: its health, shared by all of them
// (G7).
//
// On probation nothing goes out. When its time is over it is vacant: one lane, the prober,
// may take it on to send one request, and the others stay still. What comes of that request
// decides: all lanes go on, or probation begins anew, for longer. A prober that turns out to
// have nothing to send gives it back, and the next lane that has something is asked.
type endpoint struct {
	s        *Service
	identity string
	// well: the health is that of a new endpoint. To know it spares the lock.
	well  atomic.Bool
	alarm alarm // guarded by the clock

	// mu is taken under lane.mu, never the other way round.
	mu     sync.Mutex
	health retry.Health // guarded by mu
	prober *lane        // guarded by mu
	lanes  []*lane      // whose endpoint it is; guarded by mu
	turn   int          // who is asked first for the next probe; guarded by mu
}

// gate says whether a lane may send.
func (e *endpoint) gate(l *lane, now time.Time) gate {
	if e.well.Load() {
		return open
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch state := e.health.State(now); {
	case state != retry.Waiting && state != retry.Probing:
		return open
	case state == retry.Probing && e.prober == nil:
		return vacant
	case state == retry.Probing && e.prober == l:
		return probe
	}
	return shut
}

// claim makes the lane the prober, if there is one wanted.
func (e *endpoint) claim(l *lane, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prober != nil || e.health.State(now) != retry.Probing {
		return false
	}
	e.prober = l
	return true
}

// release gives the probe back; somebody else is asked, by the clock's goroutine.
func (e *endpoint) release(l *lane, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prober == l {
		e.prober = nil
		e.s.clock.set(&e.alarm, now)
	}
}

// wake is the clock's: probation is over, or a probe was given back. One lane after another
// is asked until one has something to send.
func (e *endpoint) wake(now time.Time) {
	e.mu.Lock()
	lanes, turn := slices.Clone(e.lanes), e.turn
	vacant := e.prober == nil && e.health.State(now) == retry.Probing
	e.mu.Unlock()
	for i := range lanes {
		if !vacant {
			return
		}
		lanes[(turn+i)%len(lanes)].poke(now)
		e.mu.Lock()
		if vacant = e.prober == nil; !vacant {
			e.turn = turn + i + 1
		}
		e.mu.Unlock()
	}
}

// report notes what came of a request. What was on its way when probation began counts only if it
// succeeded: then the endpoint is well. A probe that was answered with a refusal which is no sign
// of illness has shown the same.
func (e *endpoint) report(l *lane, probe bool, o retry.Outcome, now time.Time) {
	if o == retry.Delivered && e.well.Load() {
		return
	}
	e.mu.Lock()
	probe = probe && e.prober == l
	before := e.health
	state := before.State(now)
	aside := state == retry.Waiting || state == retry.Probing
	switch {
	case o == retry.Canceled || aside && !probe && o != retry.Delivered:
	case probe && !retry.Ill(o):
		e.health = retry.Health{}
	default:
		e.health = before.After(e.s.cfg.Probation, o, now)
	}
	if probe {
		e.prober = nil
	}
	e.changedLocked(l, before, now)
}

// changedLocked does what a change of health asks for. It gives mu back.
func (e *endpoint) changedLocked(l *lane, before retry.Health, now time.Time) {
	after, state := e.health, e.health.State(now)
	e.well.Store(state == retry.Well)
	if before.Until.IsZero() != after.Until.IsZero() {
		e.prober = nil // who had taken on a probe need not make it, or not yet
	}
	wakeAt := after.Until
	if state == retry.Probing && e.prober == nil {
		wakeAt = now // the probe came to nothing: somebody else's turn
	}
	e.s.clock.set(&e.alarm, wakeAt)
	lanes := slices.Clone(e.lanes)
	e.mu.Unlock()
	if before.Until.Equal(after.Until) {
		return
	}
	e.s.shared.report(e.identity, after)
	log := e.s.log.With("subscription", l.termsNow().sub.Name, "source", l.source.label)
	switch { // once, not for each event
	case after.Until.IsZero():
		log.Info("endpoint is well again", "after", time.Since(before.Since).Round(time.Millisecond))
		e.note(l, activity.ProbationEnded, "after "+quantity.FormatSpan(time.Since(before.Since).Round(time.Second)))
	case before.Until.IsZero():
		log.Info("endpoint is put on probation", "outcome", after.Last, "failures", after.Failures, "until", after.Until)
		e.note(l, activity.ProbationBegan, fmt.Sprintf("%s, %d failures", after.Last, after.Failures))
	default:
		log.Info("endpoint stays on probation", "outcome", after.Last, "since", after.Since, "until", after.Until)
	}
	for _, other := range lanes {
		if other != l { // l looks for itself when it is done
			other.poke(now)
		}
	}
}

// note has it kept that the endpoint was put on probation, or is well again. It is put down to the lane
// that found it out; others may have the same endpoint.
func (e *endpoint) note(l *lane, kind activity.Kind, detail string) {
	sub := l.termsNow().sub
	object, _ := topics.ObjectOf(sub)
	e.s.cfg.Notes.Note(context.Background(), activity.Entry{Kind: kind, Object: object, Detail: detail, Silent: sub.Source.IsYardsOwn()})
}

// hear takes in what another node tells of the endpoint. It tells nobody.
func (e *endpoint) hear(heard retry.Health, now time.Time) {
	e.mu.Lock()
	before := e.health
	e.health = agree(before, heard, now)
	if before.Until.Equal(e.health.Until) {
		e.mu.Unlock()
		return
	}
	e.well.Store(e.health.State(now) == retry.Well)
	e.prober = nil // who had taken on a probe need not make it, or not yet
	e.s.clock.set(&e.alarm, e.health.Until)
	lanes := slices.Clone(e.lanes)
	e.mu.Unlock()
	for _, l := range lanes {
		l.poke(now)
	}
}

func (e *endpoint) resume(l *lane, now time.Time) {
	e.mu.Lock()
	before := e.health
	e.health = retry.Health{}
	e.changedLocked(l, before, now)
	l.poke(now)
}

func (e *endpoint) state(now time.Time) EndpointState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return EndpointState{
		State: e.health.State(now), Failures: e.health.Failures, Last: e.health.Last,
		Since: e.health.Since, Until: e.health.Until,
	}
}

// enter and leave keep the list of lanes. leave reports whether it was the last.
func (e *endpoint) enter(l *lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lanes = append(e.lanes, l)
}

func (e *endpoint) leave(l *lane, now time.Time) (last bool) {
	e.release(l, now)
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.lanes, l); i >= 0 {
		e.lanes = slices.Delete(e.lanes, i, i+1)
	}
	if len(e.lanes) == 0 {
		e.s.clock.set(&e.alarm, time.Time{})
	}
	return len(e.lanes) == 0
}
