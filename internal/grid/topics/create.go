package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/broker"
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
	asking := k.mustAsk(nil, r.Settings)
	if asking {
		r.State, r.Why, r.Validation = Pending, whyPending, k.newValidation()
	} else {
		err = k.sources.activate(ctx, r, at)
	}
	if err == nil {
		r, err = k.insert(ctx, r)
	}
	if err == nil && asking {
		r, err = k.ask(ctx, r)
	}
	if err != nil {
		return Subscription{}, fmt.Errorf("create subscription %q of %s: %w", name, at.Source, err)
	}
	k.log.Info("subscription created", "subscription", r.Name, "source", r.Source, "id", r.ID, "state", r.State)
	return r.Subscription, nil
}

// CheckSubscription says what is wrong with a subscription by itself, before there is a yard that it
// could be made in. Errors wrap ErrInvalid. Create refuses the same, and what only a yard can know.
func CheckSubscription(source Source, name string, s Settings) error {
	err := invalidIf("subscription", spec.CheckSubscriptionName(name))
	if source.DomainTopic != "" {
		err = cmp.Or(err, checkDomainTopic(source.DomainTopic), s.checkDomain(source))
	}
	return cmp.Or(err, s.Check())
}

// draw makes a definition of what was asked for. Several who create at once may all see room for
// one more: the bound is there for the memory.
func (k *Registry) draw(source Source, name string, s Settings) (*record, origin, error) {
	at, err := k.sources.find(source)
	if err == nil {
		at.DomainTopic, err = k.sources.domainTopicOf(at)
	}
	if err == nil {
		err = invalidIf("subscription", spec.CheckSubscriptionName(name))
	}
	if err != nil {
		return nil, at, err
	}
	r := &record{Subscription: Subscription{
		Name: name, ID: newID(), Source: at.Source, SourceID: at.id, Created: now(), Resource: k.sources.resource(at.Source),
	}}
	r.Updated = r.Created
	if r.Settings, err = k.rules.vet(s, at, r.Subscription); err != nil {
		return nil, at, err
	}
	if n := len(k.Snapshot().BySource[at.id]); n >= MaxSubscriptions {
		return nil, at, invalid("%s has %d subscriptions already: delete one first", at.Source, n)
	}
	return r, at, nil
}

// insert lets the store decide who is first. Only a name that is taken is looked at.
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
	if err != nil || r.Source.Hub != "" {
		return stored.Value, err
	}
	// A topic that was deleted meanwhile may have missed the new subscription, which goes as well.
	// Where nobody knows it stays: a leftover does no harm.
	gone := k.standing(ctx, stored.Value)
	if !errors.Is(gone, ErrTopicNotFound) {
		return stored.Value, nil
	}
	if err := k.subscriptions.Delete(ctx, stored); err != nil && !mirror.GoneOrChanged(err) {
		k.log.Warn("subscription of a deleted topic is still stored", "subscription", r.Name, "error", err)
	}
	return nil, gone
}

// replaceable looks at what has the name, and gives its revision if nobody could miss it: its
// endpoint never agreed, or its source was made anew.
//
// Of two sources of a name the later one counts, and this node may not have heard of it yet. Of
// topics the store knows. Of hubs only the broker does, who may be as late, but an old hub has no
// subscriptions that were made after the new one.
func (k *Registry) replaceable(ctx context.Context, r *record) (meta.Revision, error) {
	there, err := k.subscriptions.Read(ctx, r.key())
	if err != nil {
		if errors.Is(err, meta.ErrNotFound) {
			err = nil
		}
		return 0, err
	}
	old := there.Value
	free := old.failedFirst()
	switch {
	case old.SourceID == r.SourceID:
	case r.Source.Hub == "":
		free, err = true, k.standing(ctx, r)
	default:
		var h broker.Hub
		h, err = k.sources.broker.Hub(r.Source.Hub)
		free = !old.Created.After(h.Created)
	}
	if err == nil && !free {
		err = fmt.Errorf("%w: change it, choose another name, or delete it first", ErrExists)
	}
	return there.Revision, err
}

// failedFirst: its endpoint has never agreed, and was given up.
func (r *record) failedFirst() bool { return r.State == Failed && r.Starts == nil }
