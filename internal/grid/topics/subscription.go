package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Find looks for a subscription by name: in a source, or (zero source) in all of them. What it
// gives shares its slices with others: change nothing in them. One whose hub is gone is shown as
// Failed.
//
// Errors: ErrNotFound, ErrAmbiguous, ErrTopicNotFound, *broker.NotFoundError.
func (k *Registry) Find(source Source, name string) (Subscription, error) {
	if source == (Source{}) {
		return k.findAnywhere(name)
	}
	there, exists := k.subscriptions.Get(subscriptionKey(source, name))
	if exists && k.Snapshot().Subscriptions[there.Value.ID] != nil {
		return k.shown(&there.Value.Subscription), nil
	}
	if _, err := k.origin(source); err != nil {
		return Subscription{}, err
	}
	return Subscription{}, notFound(source, name)
}

func (k *Registry) findAnywhere(name string) (Subscription, error) {
	var found *Subscription
	folded := auth.Fold(name)
	for _, s := range k.Snapshot().Subscriptions {
		if auth.Fold(s.Name) != folded {
			continue
		}
		if found != nil {
			return Subscription{}, fmt.Errorf("%w: %s and %s have one named %.80q: say whose is meant", ErrAmbiguous, found.Source, s.Source, name)
		}
		found = s
	}
	if found == nil {
		return Subscription{}, notFound(Source{}, name)
	}
	return k.shown(found), nil
}

// shown is a subscription as users see it.
func (k *Registry) shown(s *Subscription) Subscription {
	shown := *s
	if why := k.gone(s); why != "" {
		shown.State, shown.Why = Failed, why
	}
	return shown
}

// Subscriptions of a source, or (zero source) all, by name. They are as Find gives them.
func (k *Registry) Subscriptions(source Source) ([]Subscription, error) {
	chosen, err := k.choose(source)
	if err != nil {
		return nil, err
	}
	list := make([]Subscription, len(chosen))
	for i, s := range chosen {
		list[i] = k.shown(s)
	}
	slices.SortFunc(list, func(x, y Subscription) int {
		return cmp.Or(cmp.Compare(auth.Fold(x.Name), auth.Fold(y.Name)), cmp.Compare(x.Resource, y.Resource))
	})
	return list, nil
}

func (k *Registry) choose(source Source) ([]*Subscription, error) {
	snapshot := k.Snapshot()
	if source == (Source{}) {
		return slices.Collect(maps.Values(snapshot.Subscriptions)), nil
	}
	at, err := k.origin(source)
	if source.Topic == "" && source.Hub != "" {
		if its := ofHub(snapshot, source.Hub); len(its) > 0 {
			return its, nil
		}
	}
	return snapshot.BySource[at.id], err
}

// ofHub gives the subscriptions of all hubs that ever had the name.
func ofHub(s *Snapshot, hub string) (its []*Subscription) {
	folded := auth.Fold(hub)
	for _, members := range s.BySource {
		if auth.Fold(members[0].Source.Hub) == folded {
			its = append(its, members...)
		}
	}
	return its
}

// Delete removes it. What it leaves elsewhere (cursors, parked logs, dead letters) others clean up,
// who hear of it by OnChange.
func (k *Registry) Delete(ctx context.Context, source Source, name string) error {
	key, err := k.keyOf(source, name)
	if err != nil {
		return err
	}
	err = k.subscriptions.Remove(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		return notFound(source, name)
	}
	if err != nil {
		return fmt.Errorf("delete subscription %q: %w", name, err)
	}
	k.log.Info("subscription deleted", "subscription", name, "source", source)
	return nil
}

// keyOf finds the key of a subscription that is to be changed. The store decides whether it is
// there; only where no source is named this node has to know it.
func (k *Registry) keyOf(source Source, name string) (string, error) {
	if source == (Source{}) {
		found, err := k.findAnywhere(name)
		if err != nil {
			return "", err
		}
		source = found.Source
	}
	if source.Topic != "" {
		if _, err := k.origin(source); err != nil {
			return "", err
		}
	}
	return subscriptionKey(source, name), nil
}
