package cluster

import (
	"context"
	"time"
)

// leastWait is how long other nodes are waited for at least: one that is well answers within it, so that
// whoever asks many things in a row has the answers of all that are well, also when its time is up.
const leastWait = 25 * time.Millisecond

type patienceKey struct{}

// WithPatience gives a context in which other nodes are waited for until a time, and not for as long as
// their answer is worth: those that have not answered by then are missing from what is asked of all. What a
// node does itself is not cut short.
func WithPatience(ctx context.Context, until time.Time) context.Context {
	return context.WithValue(ctx, patienceKey{}, until)
}

// Wait bounds what is asked of other nodes: by the longest time that the answer is worth, and by the
// patience of the context, if it has any.
func Wait(ctx context.Context, longest time.Duration) (context.Context, context.CancelFunc) {
	if until, ok := ctx.Value(patienceKey{}).(time.Time); ok {
		longest = min(longest, max(time.Until(until), leastWait))
	}
	return context.WithTimeout(ctx, longest)
}
