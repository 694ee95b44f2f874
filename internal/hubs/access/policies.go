package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Policies lists those of a hub, or of the namespace for "", by name.
func (k *Registry) Policies(hub string) ([]Policy, error) {
	at, err := k.level(hub)
	if err != nil {
		return nil, err
	}
	var list []Policy
	for key, r := range k.live.Load().byKey {
		if strings.HasPrefix(key, at.prefix()) {
			list = append(list, r.Policy)
		}
	}
	slices.SortFunc(list, func(x, y Policy) int { return cmp.Compare(auth.Fold(x.Name), auth.Fold(y.Name)) })
	return list, nil
}

// Policy gives one; ErrNotFound.
func (k *Registry) Policy(hub, name string) (Policy, error) {
	at, err := k.level(hub)
	if err != nil {
		return Policy{}, err
	}
	r, ok := k.live.Load().byKey[at.key(name)]
	if !ok {
		return Policy{}, notFound(hub, name)
	}
	return r.Policy, nil
}

// All lists the policies of the namespace and of all hubs that exist, by hub and name.
func (k *Registry) All() []Policy {
	var list []Policy
	for _, r := range k.live.Load().byKey {
		if k.inForce(r) {
			list = append(list, r.Policy)
		}
	}
	slices.SortFunc(list, func(x, y Policy) int {
		return cmp.Or(cmp.Compare(auth.Fold(x.Hub), auth.Fold(y.Hub)), cmp.Compare(auth.Fold(x.Name), auth.Fold(y.Name)))
	})
	return list
}

// level is that of a hub which exists, or of the namespace. What a path would take for a
// part of a hub is none, whatever the store has kept.
func (k *Registry) level(hub string) (level, error) {
	if hub == "" {
		return level{}, nil
	}
	created, exists := k.hub(hub)
	if !exists || auth.ReservedSegment(hub) != "" {
		return level{}, fmt.Errorf("%w: there is no hub %.80q", ErrNotFound, hub)
	}
	return level{hub: auth.Fold(hub), created: created}, nil
}

func notFound(hub, name string) error {
	if hub == "" {
		return fmt.Errorf("%w: the namespace has none named %.80q", ErrNotFound, name)
	}
	return fmt.Errorf("%w: hub %.80q has none named %.80q", ErrNotFound, hub, name)
}

// Create makes a policy with fresh keys, or those given in p; it is durable when the
// call returns. Errors: ErrExists, ErrInvalid, ErrNotFound (the hub), the store's.
func (k *Registry) Create(ctx context.Context, p Policy) (Policy, error) {
	r, err := k.define(p)
	if err != nil {
		return Policy{}, fmt.Errorf("create policy: %w", err)
	}
	_, err = k.policies.Put(ctx, mirror.Item[record]{Key: r.key(), Value: r})
	if errors.Is(err, meta.ErrConflict) {
		err = fmt.Errorf("%w: choose another name, or delete it first", ErrExists)
	}
	if err != nil {
		return Policy{}, fmt.Errorf("create policy %q: %w", p.Name, err)
	}
	k.log.Info("policy created", "policy", r.Name, "hub", r.Hub, "rights", r.Rights)
	k.sweep(ctx)
	return r.Policy, nil
}

// define checks what was asked for and fills in the rest. That of several who create at
// once all may see room for one is accepted: the bound is there for the memory.
func (k *Registry) define(p Policy) (record, error) {
	if err := check(p); err != nil {
		return record{}, err
	}
	at, err := k.level(p.Hub)
	if err != nil {
		return record{}, err
	}
	if list, _ := k.Policies(p.Hub); len(list) >= MaxPolicies {
		return record{}, fmt.Errorf("%w: there are %d already, delete one first", ErrInvalid, len(list))
	}
	p.Rights = implied(p.Rights)
	p.Primary = cmp.Or(p.Primary, newKey())
	p.Secondary = cmp.Or(p.Secondary, newKey())
	p.Created = now()
	return record{Policy: p, level: at}, nil
}

// Regenerate makes one of the keys anew. When it returns the old one is good for nothing,
// and whatever stands on it ends.
func (k *Registry) Regenerate(ctx context.Context, hub, name string, key Key) (Policy, error) {
	at, err := k.level(hub)
	if err != nil {
		return Policy{}, err
	}
	var renew func(*Policy)
	switch key {
	case PrimaryKey:
		renew = func(p *Policy) { p.Primary = newKey() }
	case SecondaryKey:
		renew = func(p *Policy) { p.Secondary = newKey() }
	default:
		return Policy{}, fmt.Errorf("%w: key %.32q, use %s or %s", ErrInvalid, string(key), PrimaryKey, SecondaryKey)
	}
	changed, err := k.renew(ctx, at.key(name), renew)
	if errors.Is(err, meta.ErrNotFound) {
		return Policy{}, notFound(hub, name)
	}
	if err != nil {
		return Policy{}, fmt.Errorf("regenerate the %s key of policy %q: %w", key, name, err)
	}
	k.log.Info("key of policy made anew", "policy", changed.Name, "hub", changed.Hub, "key", key)
	return changed, nil
}

// Limit changes the quota of a policy, and nothing that stands on it. Errors: ErrNotFound,
// ErrInvalid, the store's.
func (k *Registry) Limit(ctx context.Context, hub, name string, how func(*quota.Limit)) (Policy, error) {
	at, err := k.level(hub)
	if err != nil {
		return Policy{}, err
	}
	unchanged := false
	changed, err := k.policies.Change(ctx, at.key(name), func(r *record) error {
		was := r.Quota
		if how(&r.Quota); r.Quota == was {
			unchanged = true
			return mirror.ErrUnchanged
		}
		unchanged = false
		return checkQuota(r.Quota)
	})
	if errors.Is(err, meta.ErrNotFound) {
		return Policy{}, notFound(hub, name)
	}
	if err != nil {
		return Policy{}, fmt.Errorf("limit policy %q: %w", name, err)
	}
	p := changed.Value.Policy
	if !unchanged {
		k.log.Info("quota of policy changed", "policy", p.Name, "hub", p.Hub, "events", p.Quota.Events, "bytes", p.Quota.Bytes)
	}
	return p, nil
}

// RegenerateRoot makes both keys of the root policy anew, in one step, and those of the blob
// account before: for keys that others may have seen. Why is a random text that stands for the
// occasion; where keys were made anew for it before, by this node or by another that starts at the
// same time, they stay: two nodes end with the same keys. If it is empty they are made anew in any
// case.
func (k *Registry) RegenerateRoot(ctx context.Context, why string) (Policy, error) {
	done := func(renewed string) bool { return why != "" && renewed == why }
	if _, exists := k.accounts.Get(blobAccount); exists { // or nobody has seen its keys
		_, err := k.changeAccount(ctx, "regenerate the keys of the blob account", func(a *Account) error {
			if done(a.Renewed) {
				return mirror.ErrUnchanged
			}
			a.Primary, a.Secondary, a.Renewed = newKey(), newKey(), why
			return nil
		})
		if err != nil {
			return Policy{}, err
		}
	}
	before := false
	changed, err := k.policies.Change(ctx, level{}.key(auth.RootPolicy), func(r *record) error {
		if before = done(r.renewed); before {
			return mirror.ErrUnchanged
		}
		r.Primary, r.Secondary, r.renewed = newKey(), newKey(), why
		return nil
	})
	if err != nil {
		return Policy{}, fmt.Errorf("regenerate the keys of the root policy: %w", err)
	}
	if !before {
		k.log.Info("keys of the root policy made anew", "policy", changed.Value.Name)
	}
	return changed.Value.Policy, nil
}

// RootRenewed is why the root policy's keys were last made anew, as RegenerateRoot was told it.
func (k *Registry) RootRenewed() string {
	return k.live.Load().byKey[level{}.key(auth.RootPolicy)].renewed
}

// Replace gives a policy the rights, quota and keys of p, in one step: what p has no key for keeps
// its own. When it returns whatever stands on the policy as it was ends; where it is as p says already,
// as when another node has just replaced it, nothing does. The root policy cannot be replaced. Errors: ErrNotFound, ErrInvalid, ErrRootPolicy, the store's.
func (k *Registry) Replace(ctx context.Context, p Policy) (Policy, error) {
	if err := check(p); err != nil {
		return Policy{}, fmt.Errorf("replace policy: %w", err)
	}
	at, err := k.level(p.Hub)
	if err != nil {
		return Policy{}, err
	}
	if isRoot(p.Hub, p.Name) {
		return Policy{}, ErrRootPolicy
	}
	changed, err := k.policies.Change(ctx, at.key(p.Name), func(r *record) error {
		was := r.Policy
		r.Name, r.Rights, r.Quota = p.Name, implied(p.Rights), p.Quota
		r.Primary, r.Secondary = cmp.Or(p.Primary, was.Primary), cmp.Or(p.Secondary, was.Secondary)
		if r.Policy == was {
			return mirror.ErrUnchanged
		}
		r.Created = now()
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) {
		return Policy{}, notFound(p.Hub, p.Name)
	}
	if err != nil {
		return Policy{}, fmt.Errorf("replace policy %q: %w", p.Name, err)
	}
	now := changed.Value.Policy
	k.log.Info("policy replaced", "policy", now.Name, "hub", now.Hub, "rights", now.Rights)
	return now, nil
}

func isRoot(hub, name string) bool { return hub == "" && auth.Fold(name) == auth.Fold(auth.RootPolicy) }

// implied adds the rights that others imply.
func implied(rights auth.Rights) auth.Rights {
	if rights&auth.Manage > auth.Send|auth.Listen {
		return auth.Manage // who has it reads metrics anyway
	}
	return rights
}

func (k *Registry) renew(ctx context.Context, key string, how func(*Policy)) (Policy, error) {
	changed, err := k.policies.Change(ctx, key, func(r *record) error {
		how(&r.Policy)
		return nil
	})
	return changed.Value.Policy, err
}

// Delete removes a policy. When it returns its keys are good for nothing, and whatever
// stands on it ends.
func (k *Registry) Delete(ctx context.Context, hub, name string) error {
	at, err := k.level(hub)
	if err != nil {
		return err
	}
	if isRoot(hub, name) {
		return ErrRootPolicy
	}
	err = k.policies.Remove(ctx, at.key(name))
	if errors.Is(err, meta.ErrNotFound) {
		return notFound(hub, name)
	}
	if err != nil {
		return fmt.Errorf("delete policy %q: %w", name, err)
	}
	k.log.Info("policy deleted", "policy", name, "hub", hub)
	return nil
}
