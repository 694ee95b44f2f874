package circuit

import "context"

// Pass is leave to make calls.
type Pass struct {
	Term int64
	// Probe: the circuit is half-open and this call tries it: with one event only. Whoever has such
	// a pass gives it back by exactly one of Member.Probed and Member.Returned.
	Probe bool
}

// Wait returns at once while the circuit is closed (no I/O, no allocation: it stands before every
// call). Else it waits until the circuit lets this caller through, as the prober or since it was
// closed; it counts as having an event to try meanwhile. ErrLeaving when leaving is closed first,
// ctx's cause when that ends.
func (m *Member) Wait(ctx context.Context, leaving <-chan struct{}) (Pass, error) {
	if p := m.gate.Load(); p != nil {
		return *p, nil
	}
	return m.wait(ctx, leaving)
}

func (m *Member) wait(ctx context.Context, leaving <-chan struct{}) (Pass, error) {
	// Run cares when there is a first waiter, and when a probe that was taken for them is left with
	// none.
	m.join(1)
	m.wakeRun()
	defer func() {
		if m.join(-1) == 0 {
			m.wakeRun()
		}
	}()
	for {
		select { // before a probe is taken: who is leaving could not make it
		case <-leaving:
			return Pass{}, ErrLeaving
		case <-ctx.Done():
			return Pass{}, context.Cause(ctx)
		default:
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
