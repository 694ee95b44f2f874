package circuit

import (
	"context"
)

// Pass is leave to make calls.
type Pass struct {
	Term int64
	// Probe: the circuit is half-open and this call tries it: with one event only. Whoever has such a pass gives
	// it back by exactly one of Member.Probed and Member.Returned.
	Probe bool
}

// Wait returns at once while the circuit is closed (no I/O, no allocation: it stands before every call). Else it
// waits until the circuit lets this caller through, as the prober or since it was closed; it counts as having an event to try meanwhile. ErrLeaving
// when leaving is closed first, ctx's cause when that ends.
func (m *Member) Wait(ctx context.Context, leaving <-chan struct{}) (Pass, error) {
	if p := m.gate.Load(); p != nil {
		return *p, nil
	}
	return m.wait(ctx, leaving)
}

func (m *Member) wait(ctx context.Context, leaving <-chan struct{}) (Pass, error) {
	m.join()
	defer m.part()
	for {
		if err := over(ctx, leaving); err != nil {
			return Pass{}, err
		}
		p, ok, changed := m.take()
		if ok {
			return p, nil
		}
		select {
		case <-changed:
		case <-leaving:
		case <-ctx.Done():
		}
	}
}

// over comes before a probe is taken: who is leaving could not make it.
func over(ctx context.Context, leaving <-chan struct{}) error {
	select {
	case <-leaving:
		return ErrLeaving
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}

// take gives a pass if there is one, else what to wait for.
func (m *Member) take() (Pass, bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.gate.Load(); p != nil {
		return *p, true, nil
	}
	if m.probe.stage == offered {
		m.probe = m.probe.taken()
		return Pass{Term: m.probe.term, Probe: true}, true, nil
	}
	return Pass{}, false, m.changed
}

// join and part keep the number of those who have an event to try. Run cares when there is a first one, and when a probe
// that was taken for them is left with none.
func (m *Member) join() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting++
	m.wakeRun()
}

func (m *Member) part() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting--; m.waiting == 0 {
		m.wakeRun()
	}
}
