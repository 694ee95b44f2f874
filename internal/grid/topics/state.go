package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// SetState is for the delivery service: Disabled with a reason, when the endpoint asked for it.
// Active lets a disabled one go on. Of one that is neither, nothing is changed: what was meant is
// an earlier state.
func (k *Registry) SetState(ctx context.Context, id string, state State, why string) error {
	return k.setState(ctx, id, state, why, func(*record) bool { return true })
}

// DisableAt is SetState to Disabled where the endpoint of a URL asked for it. Of a subscription
// that has another by now nothing is changed: that one has not asked.
func (k *Registry) DisableAt(ctx context.Context, id, url, why string) error {
	return k.setState(ctx, id, Disabled, why, func(r *record) bool { return r.Webhook != nil && r.Webhook.URL == url })
}

func (k *Registry) setState(ctx context.Context, id string, state State, why string, meant func(*record) bool) error {
	if state != Disabled && state != Active {
		return invalid("state %q: set %s or %s", state, Disabled, Active)
	}
	s := k.Snapshot().Subscriptions[id]
	if s == nil {
		return fmt.Errorf("%w: id %.32q", ErrNotFound, id)
	}
	changed := false
	r, err := k.changeOf(ctx, subscriptionKey(s.Source, s.Name), id, func(r *record) error {
		changed = true
		switch {
		case !meant(r):
		case state == Disabled && (r.State == Active || r.State == Paused):
			r.State, r.Why = Disabled, why
			return nil
		case state == Active && r.State == Disabled:
			at, err := k.sources.present(r)
			if err != nil {
				return err
			}
			return k.sources.activate(ctx, r, at)
		}
		changed = false
		return mirror.ErrUnchanged
	})
	if errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("%w: id %.32q", ErrNotFound, id)
	}
	if err != nil {
		return fmt.Errorf("set subscription %q to %s: %w", s.Name, state, err)
	}
	if changed {
		k.log.Info("state of subscription", "subscription", r.Name, "source", r.Source, "state", r.State, "why", r.Why)
	}
	return nil
}
