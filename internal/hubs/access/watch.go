package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// lostPause is how long to wait before a watch that was lost begins anew.
const lostPause = 250 * time.Millisecond

// Run follows the changes that other nodes make, until ctx ends, and returns nil then.
// Without it the registry knows only its own.
func (k *Registry) Run(ctx context.Context) error {
	for {
		err := k.watch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, meta.ErrWatchLost):
			return fmt.Errorf("watch policies: %w", err)
		}
		k.log.Warn("watch of the policies was lost, beginning anew", "error", err)
		select {
		case <-time.After(lostPause):
		case <-ctx.Done():
		}
	}
}

// watch takes over the present state and then every change, until it fails.
func (k *Registry) watch(ctx context.Context) error {
	before, err := k.known(ctx)
	if err != nil {
		return err
	}
	watch, err := k.meta.Watch(ctx, policiesPrefix)
	if err != nil {
		return err
	}
	present, err := watch.Next()
	if err != nil {
		return err
	}
	if err := k.takeOver(ctx, before, present); err != nil {
		return err
	}
	k.sweep(ctx)
	for {
		changes, err := watch.Next()
		if err != nil {
			return err
		}
		if err := k.take(ctx, changes); err != nil {
			return err
		}
	}
}

func (k *Registry) known(ctx context.Context) ([]sighting, error) {
	if err := k.begin(ctx); err != nil {
		return nil, err
	}
	defer k.end()
	return k.policies.known(), nil
}

// takeOver makes the registry follow a watch's first state. What was known before the
// watch was asked for, and is not in that state, was deleted while nobody watched: the
// state is not older than what we had seen acknowledged then.
func (k *Registry) takeOver(ctx context.Context, before []sighting, present []meta.Change) error {
	if err := k.take(ctx, present); err != nil {
		return err
	}
	there := make(map[string]bool, len(present))
	for _, c := range present {
		there[c.Key] = true
	}
	if err := k.begin(ctx); err != nil {
		return err
	}
	defer k.end()
	k.policies.dropMissing(before, there)
	return nil
}

func (k *Registry) take(ctx context.Context, changes []meta.Change) error {
	if err := k.begin(ctx); err != nil {
		return err
	}
	defer k.end()
	k.policies.apply(k.sightings(changes)...)
	return nil
}

// sightings reads changes. One that cannot be read is left out and reported: the others
// must not stop for it.
func (k *Registry) sightings(changes []meta.Change) []sighting {
	seen := make([]sighting, 0, len(changes))
	for _, c := range changes {
		s := sighting{key: c.Key, revision: c.Revision, gone: c.Deleted, watched: true}
		if !c.Deleted {
			r, err := decode(c.Entry)
			if err != nil {
				k.log.Error("a policy was changed to something unreadable, going on with the old one", "error", err)
				continue
			}
			s.record = r
		}
		seen = append(seen, s)
	}
	return seen
}
