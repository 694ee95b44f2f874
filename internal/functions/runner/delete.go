package runner

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Delete stops a function and forgets it with its attempts, counts and circuit; group, checkpoints
// and poison stay. It returns when that is done here; from the moment it is decided it is done even
// if nobody waits for it.
func (k *Registry) Delete(ctx context.Context, name string) error {
	var marked *entry
	err := mirror.Uncontested(ctx, func() (err error) {
		marked, err = k.mark(ctx, name)
		return err
	})
	if err == nil {
		err = k.stopped(ctx, marked)
	}
	if err == nil {
		err = k.finish(ctx, marked)
	}
	if err != nil {
		return fmt.Errorf("delete function %.120q: %w", name, err)
	}
	k.log.Info("function deleted", "function", name)
	return nil
}

// mark decides the deletion.
func (k *Registry) mark(ctx context.Context, name string) (*entry, error) {
	there, err := k.get(ctx, name)
	if err != nil || there.Deleting {
		return there, err
	}
	if there.Name != name && there.problem == nil {
		return k.find(ctx, name) // which tells of the other spelling
	}
	there.Deleting = true
	return k.put(ctx, there)
}
