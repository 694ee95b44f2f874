package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// Create stores a definition, with defaults filled in; makes the group and the default poison hub
// where they are missing. It runs soon after.
//
// Errors: ErrExists, ErrInvalid, *broker.NotFoundError (hub), the store's.
func (k *Registry) Create(ctx context.Context, d Definition) (Function, error) {
	e, err := k.createNamed(ctx, d)
	if err != nil {
		return Function{}, fmt.Errorf("create function %.120q: %w", d.Name, err)
	}
	return k.function(ctx, e, true), nil
}

// createNamed refuses names that other programs may take for others. What is there keeps its name.
func (k *Registry) createNamed(ctx context.Context, d Definition) (*entry, error) {
	if part := auth.AmbiguousPart(d.Name); part != "" {
		return nil, invalid("name %.120q has %q in it: choose one without", d.Name, part)
	}
	return k.create(ctx, d)
}

func (k *Registry) create(ctx context.Context, d Definition) (*entry, error) {
	d, err := k.vet(d)
	if err != nil {
		return nil, err
	}
	if there, err := k.get(ctx, d.Name); err == nil && !there.Deleting {
		return nil, taken(d.Name, there.Name)
	}
	if err := k.vacant(ctx, d); err != nil {
		return nil, err
	}
	if err := k.provide(ctx, d); err != nil {
		return nil, err
	}
	all, err := k.cfg.Groups.Checkpoints(ctx, d.group(""))
	if err != nil {
		return nil, err
	}
	at := slices.DeleteFunc(all, func(c processor.Checkpoint) bool { return c.Updated.IsZero() })
	d.Created = now()
	d.Since = d.since(Definition{})
	e, err := k.insert(ctx, &entry{stored: stored{Definition: d, OwnRecords: true}, key: keyOf(d.Name)})
	if err != nil {
		return nil, err
	}
	k.log.Info("function created", "function", d.Name, "hub", d.Hub, "group", d.Group, "continues_at_checkpoints", len(at))
	return e, nil
}

// now is a time as it is stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// since is when latest was said: now, unless it stood there before.
func (d Definition) since(before Definition) time.Time {
	switch {
	case d.Start != StartLatest:
		return time.Time{}
	case before.Start == StartLatest:
		return before.Since
	}
	return now()
}

// vacant wants the group to be free. That two who create at once may get one group is
// accepted: they were as well made one after the other by somebody who had not looked.
func (k *Registry) vacant(ctx context.Context, d Definition) error {
	all, err := k.all(ctx)
	if err != nil {
		return err
	}
	for _, e := range all {
		switch {
		case e.Deleting || e.key == keyOf(d.Name):
		case e.problem == nil && sameGroup(e.group(""), d.group("")):
			return invalid("group %q of hub %q is function %q's, and two would share the events: choose a group of its own", d.Group, d.Hub, e.Name)
		}
	}
	return nil
}

func taken(name, by string) error {
	if name != by {
		return fmt.Errorf("%w: %q differs from it in case alone: choose another name", ErrExists, by)
	}
	return fmt.Errorf("%w: change it, choose another name, or delete it first", ErrExists)
}

// insert stores a new definition. The deletion of one that had its name is finished first.
func (k *Registry) insert(ctx context.Context, e *entry) (made *entry, err error) {
	err = mirror.Uncontested(ctx, func() (conflict error) {
		if made, conflict = k.put(ctx, e); !errors.Is(conflict, meta.ErrConflict) {
			return conflict
		}
		there, err := k.get(ctx, e.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			return conflict
		case err != nil:
			return err
		case !there.Deleting:
			return taken(e.Name, there.Name)
		}
		if err = k.stopped(ctx, there); err == nil {
			err = k.finish(ctx, there)
		}
		if err != nil {
			return fmt.Errorf("finish deletion of the function that had this name: %w", err)
		}
		return conflict
	})
	return made, err
}

// Ensure is for configured functions: created, or changed where it differs. One that is to read
// another hub or group is deleted and made anew, as its circuit and its work are the group's.
func (k *Registry) Ensure(ctx context.Context, d Definition) error {
	err := mirror.Uncontested(ctx, func() error { return k.ensure(ctx, d) })
	if err != nil {
		return fmt.Errorf("ensure function %.120q: %w", d.Name, err)
	}
	return nil
}

func (k *Registry) ensure(ctx context.Context, d Definition) error {
	there, err := k.get(ctx, d.Name)
	if errors.Is(err, ErrNotFound) || err == nil && there.Deleting {
		_, err = k.createNamed(ctx, d)
		return err
	}
	if err != nil {
		return err
	}
	if there.problem != nil {
		return fmt.Errorf("%w; for that take it out of the configuration", there.problem)
	}
	if there.Name != d.Name {
		return taken(d.Name, there.Name)
	}
	if d, err = k.vet(d); err != nil {
		return err
	}
	if sameGroup(there.group(""), d.group("")) {
		_, err = k.change(ctx, there, d)
		return err
	}
	// It is deleted and made anew, once nothing is known that speaks against it.
	if err := k.vacant(ctx, d); err != nil {
		return err
	}
	if err := k.provide(ctx, d); err != nil {
		return err
	}
	if err := k.Delete(ctx, d.Name); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	_, err = k.create(ctx, d)
	return err
}
