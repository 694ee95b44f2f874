package topics

import (
	"context"
	"time"
)

// finishTimeout bounds what goes on although the caller has left.
const finishTimeout = time.Minute

// detached is for what has been decided: it does not depend on the patience of a client.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
}

// change reads a subscription and lets it be changed, again if somebody else was faster. Errors
// of the store are passed on, meta.ErrNotFound among them. how may say mirror.ErrUnchanged.
func (k *Registry) change(ctx context.Context, key string, how func(*record) error) (*record, error) {
	changed, err := k.subscriptions.Change(ctx, key, func(r **record) error { return how(*r) })
	return changed.Value, err
}
