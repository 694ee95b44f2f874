package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// maxTries bounds how often a change begins anew because another node was faster. After
// a conflict a store's reads are as new as what conflicted, so that few are needed.
const maxTries = 16

// change reads a policy and lets it be changed, again if somebody else was faster.
func (k *Registry) change(ctx context.Context, key string, how func(sighting) error) error {
	err := meta.CheckKey(key)
	if err != nil {
		return meta.ErrNotFound // no policy has such a name
	}
	for range maxTries {
		var entry meta.Entry
		if entry, err = k.meta.Get(ctx, key); err != nil {
			return err
		}
		there, bad := decode(entry)
		if bad != nil {
			return bad
		}
		err = how(sighting{key: key, revision: entry.Revision, record: there})
		if !errors.Is(err, meta.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("others keep changing it: %w", err)
}

// put stores a policy and takes it into use, if its revision is still that; zero means a
// new one.
func (k *Registry) put(ctx context.Context, r record, expected meta.Revision) (Policy, error) {
	if err := k.begin(ctx); err != nil {
		return Policy{}, err
	}
	defer k.end()
	revision, err := k.meta.CompareAndSet(ctx, r.key(), expected, r.encode())
	if err != nil {
		return Policy{}, err
	}
	k.policies.apply(sighting{key: r.key(), revision: revision, record: r})
	return r.Policy, nil
}

func (k *Registry) remove(ctx context.Context, s sighting) error {
	if err := k.begin(ctx); err != nil {
		return err
	}
	defer k.end()
	if err := k.meta.Delete(ctx, s.key, s.revision); err != nil {
		return err
	}
	s.gone = true
	k.policies.apply(s)
	return nil
}

// orphanAge is how old a policy has to be before it is removed because its hub is not
// there: the hub may be new, and not known to this node yet.
const orphanAge = 24 * time.Hour

// sweep removes policies of hubs that were deleted. Nobody can use them; this is only to
// keep nothing for ever. What fails is left to the next sweep.
func (k *Registry) sweep(ctx context.Context) {
	all, err := k.known(ctx)
	if err != nil {
		return
	}
	for _, s := range all {
		if s.gone || !k.orphaned(s.record) {
			continue
		}
		err := k.remove(ctx, s)
		if err != nil && !errors.Is(err, meta.ErrConflict) && !errors.Is(err, meta.ErrNotFound) {
			k.log.Warn("policy of a deleted hub is still there", "policy", s.record.Name, "hub", s.record.Hub, "error", err)
			return
		}
	}
}

func (k *Registry) orphaned(r record) bool {
	if r.Hub == "" {
		return false
	}
	created, exists := k.hub(r.Hub)
	if exists {
		return r.level.created.Before(created)
	}
	return time.Since(r.Created) > orphanAge
}
