package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
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
	snapshot := k.Snapshot()
	if exists && snapshot.Subscriptions.Get(there.Value.ID) != nil {
		return k.sources.shown(&there.Value.Subscription), nil
	}
	// The table is a moment ahead of what readers see, who then see the one that is being replaced.
	its, err := k.choose(snapshot, source)
	named := func(s *Subscription) bool {
		return auth.Fold(s.Name) == auth.Fold(name) && auth.Fold(s.Source.DomainTopic) == auth.Fold(source.DomainTopic)
	}
	if i := slices.IndexFunc(its, named); i >= 0 {
		return k.sources.shown(its[i]), nil
	}
	if err == nil {
		err = notFound(source, name)
	}
	return Subscription{}, err
}

func (k *Registry) findAnywhere(name string) (Subscription, error) {
	var found *Subscription
	folded := auth.Fold(name)
	for s := range k.Snapshot().Subscriptions.All() {
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
	return k.sources.shown(found), nil
}

// Subscriptions of a source (a domain's with those of its topics), or (zero source) all, by name.
// They are as Find gives them.
func (k *Registry) Subscriptions(source Source) ([]Subscription, error) {
	chosen, err := k.choose(k.Snapshot(), source)
	if err != nil && len(chosen) == 0 {
		return nil, err
	}
	list := make([]Subscription, len(chosen))
	for i, s := range chosen {
		list[i] = k.sources.shown(s)
	}
	slices.SortFunc(list, func(x, y Subscription) int {
		return cmp.Or(cmp.Compare(auth.Fold(x.Name), auth.Fold(y.Name)), cmp.Compare(x.Resource, y.Resource))
	})
	return list, nil
}

// choose gives the subscriptions of a source, or (zero source) all, in no order. Those of a hub are
// of all hubs that ever had the name, also where there is none now, which the error says.
func (k *Registry) choose(snapshot *Snapshot, source Source) ([]*Subscription, error) {
	if source == (Source{}) {
		return slices.Collect(snapshot.Subscriptions.All()), nil
	}
	at, err := k.sources.find(source)
	if source.DomainTopic != "" {
		return slices.DeleteFunc(slices.Clone(snapshot.BySource[at.id]), func(s *Subscription) bool {
			return auth.Fold(s.Source.DomainTopic) != auth.Fold(source.DomainTopic)
		}), err
	}
	if source.Topic != "" {
		return snapshot.BySource[at.id], err
	}
	var its []*Subscription
	folded := auth.Fold(source.Hub)
	for _, members := range snapshot.BySource {
		if auth.Fold(members[0].Source.Hub) == folded {
			its = append(its, members...)
		}
	}
	return its, err
}

// Delete removes it, and with the last one of a domain topic that topic, unless it is to stay. What it
// leaves elsewhere (cursors, parked logs, dead letters) is cleaned up by
// those who hear of it by OnChange.
func (k *Registry) Delete(ctx context.Context, source Source, name string) error {
	key, err := k.keyOf(source, name)
	if err != nil {
		return err
	}
	there, err := k.subscriptions.Read(ctx, key)
	if err == nil {
		err = k.releaseDomainTopic(ctx, there.Value)
	}
	if err == nil {
		err = k.subscriptions.Remove(ctx, key)
	}
	if errors.Is(err, meta.ErrNotFound) {
		return notFound(source, name)
	}
	if err != nil {
		return fmt.Errorf("delete subscription %q: %w", name, err)
	}
	k.log.Info("subscription deleted", "subscription", name, "source", source)
	return nil
}

// Deleted reports whether a subscription that existed does no more, whatever this node has heard of
// it: it reads the store, as it is by now (meta.Store.Fresh). Other nodes tell of changes in time, but
// nothing is removed for good on the strength of what was not heard yet.
func (k *Registry) Deleted(ctx context.Context, id string) (bool, error) {
	if err := k.subscriptions.Fresh(ctx, subscriptionsPrefix); err != nil {
		return false, err
	}
	all, err := k.subscriptions.List(ctx, subscriptionsPrefix)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(all, func(i mirror.Item[*record]) bool { return i.Value.ID == id }), nil
}

// DisableAt makes a subscription Disabled because the endpoint of a URL asked for it. One that is
// neither Active nor Paused, or has another endpoint by now, stays as it is: it was not meant.
func (k *Registry) DisableAt(ctx context.Context, id, url, why string) error {
	s := k.Snapshot().Subscriptions.Get(id)
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
		if _, err := k.sources.find(source); err != nil {
			return "", err
		}
	}
	return subscriptionKey(source, name), nil
}

// change reads a subscription and lets it be changed, again if somebody else was faster. Errors
// of the store are passed on, meta.ErrNotFound among them. how may return mirror.ErrUnchanged.
func (k *Registry) change(ctx context.Context, key string, how func(*record) error) (*record, error) {
	changed, err := k.subscriptions.Change(ctx, key, func(r **record) error { return how(*r) })
	return changed.Value, err
}

// changeOf is change for the subscription of that ID alone, not for another of its name.
func (k *Registry) changeOf(ctx context.Context, key, id string, how func(*record) error) (*record, error) {
	return k.change(ctx, key, func(r *record) error {
		if r.ID != id {
			return meta.ErrNotFound
		}
		return how(r)
	})
}

// detached is for what has been decided: it does not depend on the patience of a client.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
}

// finishTimeout bounds what goes on although the caller has left.
const finishTimeout = time.Minute
