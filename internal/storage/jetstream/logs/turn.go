package logs

import "context"

// turn is a lock for what asks the storage while it is held. Whoever waits for one can give up, and a
// bubble of testing/synctest sees that it waits, which it does not of a mutex.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn, until ctx ends.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }
