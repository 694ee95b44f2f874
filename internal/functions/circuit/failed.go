package circuit

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// Failed counts failures that put nothing away, and decides at once with what is known here; true:
// the circuit is not closed (any more). A failure of the prober's is for Probed instead.
//
// With an error these are too many, and that could not be stored: they are counted all the same and
// not to be given again. Run goes on trying, and MayPutAway allows nothing before it is known what
// became of it.
func (m *Member) Failed(ctx context.Context, n int, s ...breaker.Sample) (open bool, err error) {
	m.count(n, s)
	m.wakeRun() // the others want to know, too
	err = m.openIfDue(ctx)
	return m.gate.Load() == nil, err
}

// FoundDown counts n failures like Failed, which may be none, of a call that found what the function
// needs down, after which so long is waited. If that lasts for the policy's whole window the circuit
// opens, however few they are.
func (m *Member) FoundDown(ctx context.Context, wait time.Duration, n int, s ...breaker.Sample) (open bool, err error) {
	m.foundDown(wait)
	return m.Failed(ctx, n, s...)
}

// openIfDue opens a closed circuit if there are too many failures.
func (m *Member) openIfDue(ctx context.Context) error {
	if m.gate.Load() == nil {
		return nil
	}
	return m.decide(ctx)
}

// decide changes the circuit if that is due by what is known here.
func (m *Member) decide(ctx context.Context) error {
	if _, due := m.due(); !due {
		return nil
	}
	err := m.change(ctx, func(breaker.Record) (breaker.Record, bool) { return m.due() })
	if err != nil {
		return fmt.Errorf("decide on circuit %s: %w", m.cfg.Function, err)
	}
	return nil
}
