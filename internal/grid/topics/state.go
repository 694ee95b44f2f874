package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// DisableAt makes a subscription Disabled because the endpoint of a URL asked for it. One that is
// neither Active nor Paused, or has another endpoint by now, stays as it is: it was not meant.
func (k *Registry) DisableAt(ctx context.Context, id, url, why string) error {
	s := k.Snapshot().Subscriptions[id]
	if s == nil {
		return fmt.Errorf("%w: id %.32q", ErrNotFound, id)
	}
	changed := false
	r, err := k.changeOf(ctx, subscriptionKey(s.Source, s.Name), id, func(r *record) error {
		changed = r.Webhook != nil && r.Webhook.URL == url && (r.State == Active || r.State == Paused)
		if !changed {
			return mirror.ErrUnchanged
		}
		r.State, r.Why = Disabled, why
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("%w: id %.32q", ErrNotFound, id)
	}
	if err != nil {
		return fmt.Errorf("set subscription %q to %s: %w", s.Name, Disabled, err)
	}
	if changed {
		k.log.Info("state of subscription", "subscription", r.Name, "source", r.Source, "state", r.State, "why", r.Why)
	}
	return nil
}
