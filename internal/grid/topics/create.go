package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Create checks the settings, asks the endpoint, and stores the subscription: Active, or Pending
// where somebody has to open the link (ErrHandshake where it refused). Hub and pull
// subscriptions ask nobody. Events published after it returned (or after it became Active) are
// delivered. It takes the place of one whose endpoint never agreed, and of one whose hub is gone.
//
// Errors: ErrInvalid, ErrExists, ErrHandshake, ErrTopicNotFound, *broker.NotFoundError, the
// store's.
func (k *Registry) Create(ctx context.Context, source Source, name string, s Settings) (Subscription, error) {
	r, at, err := k.draw(source, name, s)
	if err != nil {
		return Subscription{}, fmt.Errorf("create subscription: %w", err)
	}
	if r, err = k.create(ctx, r, at); err != nil {
		return Subscription{}, fmt.Errorf("create subscription %q of %s: %w", name, at.Source, err)
	}
	k.log.Info("subscription created", "subscription", r.Name, "source", r.Source, "id", r.ID, "state", r.State)
	return r.Subscription, nil
}

// draw makes a definition of what was asked for. That of several who create at once all may see
// one place left is accepted: the bound is there for the memory.
func (k *Registry) draw(source Source, name string, s Settings) (*record, origin, error) {
	at, err := k.origin(source)
	if err != nil {
		return nil, at, err
	}
	if err := checkSubscriptionName(name); err != nil {
		return nil, at, err
	}
	r := &record{Subscription: Subscription{
		Name: name, ID: newID(), Source: at.Source, SourceID: at.id, Created: now(), Resource: k.resource(at.Source),
	}}
	r.Updated = r.Created
	if r.Settings, err = k.vet(s, at, r.Subscription); err != nil {
		return nil, at, err
	}
	if n := len(k.Snapshot().BySource[at.id]); n >= MaxSubscriptions {
		return nil, at, invalid("%s has %d subscriptions already: delete one first", at.Source, n)
	}
	return r, at, nil
}

func (k *Registry) create(ctx context.Context, r *record, at origin) (*record, error) {
	if !k.mustAsk(nil, r.Settings) {
		if err := k.activate(ctx, r, at); err != nil {
			return nil, err
		}
		return k.insert(ctx, r)
	}
	r.State, r.Why, r.Validation = Pending, whyPending, k.newValidation()
	stored, err := k.insert(ctx, r)
	if err != nil {
		return nil, err
	}
	return k.ask(ctx, stored)
}

// insert lets the store decide who is first. Only when the name is taken does it look at by
// whom.
func (k *Registry) insert(ctx context.Context, r *record) (*record, error) {
	item := mirror.Item[*record]{Key: r.key(), Value: r}
	var stored mirror.Item[*record]
	err := mirror.Uncontested(ctx, func() (err error) {
		if stored, err = k.subscriptions.Put(ctx, item); !errors.Is(err, meta.ErrConflict) {
			return err
		}
		conflict := err
		if item.Revision, err = k.replaceable(ctx, r); err != nil {
			return err
		}
		return conflict
	})
	if err != nil {
		return nil, err
	}
	return stored.Value, k.stillThere(ctx, stored)
}

// replaceable looks at what has the name, and gives its revision if that is nothing anybody
// could miss.
func (k *Registry) replaceable(ctx context.Context, r *record) (meta.Revision, error) {
	there, err := k.subscriptions.Read(ctx, r.key())
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case there.Value.SourceID != r.SourceID:
		return there.Revision, k.outlives(ctx, r, there.Value)
	case there.Value.failedFirst():
		return there.Revision, nil
	}
	return 0, taken()
}

func taken() error {
	return fmt.Errorf("%w: change it, choose another name, or delete it first", ErrExists)
}

// outlives tells whether the source of a new subscription has taken the place of an old one's, and
// not the other way round: this node may not have heard yet that it was made anew. Of topics the
// store knows. Of hubs only the broker does, who may be as late, but an old hub has no
// subscriptions that were made after the new one.
func (k *Registry) outlives(ctx context.Context, r, old *record) error {
	if r.Source.Hub == "" {
		return k.standing(ctx, r)
	}
	h, err := k.broker.Hub(r.Source.Hub)
	if err == nil && old.Created.After(h.Created) {
		err = taken()
	}
	return err
}

// failedFirst: its endpoint has never agreed, and was given up.
func (r *record) failedFirst() bool { return r.State == Failed && r.Starts == nil }

// activate has events delivered from now on, or from where they were before. The ends are read
// before the definition is stored, so that nothing published after that is missed.
func (k *Registry) activate(ctx context.Context, r *record, at origin) (err error) {
	if r.Starts == nil {
		if r.Starts, err = k.starts(ctx, at, r.FromStart); err != nil {
			return err
		}
	}
	r.Validation.close()
	r.State, r.Why = Active, ""
	if r.Paused {
		r.State = Paused
	}
	r.lapse(time.Now())
	return nil
}
