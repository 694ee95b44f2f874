package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// workPrefix is that of the entries about a function's work (functions.Host writes them).
const workPrefix = "work/"

// Delete stops a function and forgets it with its attempts, counts and circuit; group, checkpoints and poison stay. It returns when that is
// done here; from the moment it is decided it is done even if nobody waits for it.
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

// stopped waits until no host of this node runs the function any more.
func (k *Registry) stopped(ctx context.Context, e *entry) error {
	k.mu.Lock()
	j, known := k.jobs[e.key], k.known(e.key)
	next := known != nil && known.revision > e.revision // the job is, or will be, the next function's
	k.mu.Unlock()
	if j == nil || next {
		return nil
	}
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it is stopping, and will be gone when it has: %w", context.Cause(ctx))
	}
}

// finish removes what a function has left and then its definition, which is marked. It may be done twice, and by several at once: once the definition
// is gone, entries of that name are those of the next function.
func (k *Registry) finish(ctx context.Context, e *entry) error {
	there, err := k.definitions.Read(ctx, e.key)
	if err == nil && there.Revision == e.revision {
		if err := k.forget(ctx, e.Definition); err != nil {
			return err
		}
		err = k.definitions.Delete(ctx, there)
	}
	if err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("remove definition: %w", err)
	}
	k.definitions.Forget(e.item()) // others have finished it
	return nil
}

// forget removes the entries of a function: circuit, counts and work. Where the group is gone they are too.
func (k *Registry) forget(ctx context.Context, d Definition) error {
	if d.Hub == "" || d.Name == "" {
		return nil // its definition could not be read
	}
	g := d.group(k.cfg.Broker.Namespace())
	for _, of := range []struct {
		prefix string
		only   string // empty: all under the prefix
	}{
		{workPrefix + d.Name + "/", ""}, {circuit.TallyPrefix + d.Name + "/", ""}, {circuit.Prefix, circuit.Prefix + d.Name},
	} {
		if err := k.removeEntries(ctx, g, of.prefix, of.only); err != nil {
			var missing *broker.NotFoundError
			if errors.As(err, &missing) {
				return nil
			}
			return fmt.Errorf("remove entries of function %q: %w", d.Name, err)
		}
	}
	return nil
}

func (k *Registry) removeEntries(ctx context.Context, g processor.Group, prefix, only string) error {
	entries, err := k.cfg.Groups.Entries(ctx, g, prefix)
	if err != nil {
		return err
	}
	for _, f := range entries {
		if only != "" && f.Key != only {
			continue
		}
		if err := k.removeEntry(ctx, g, f); err != nil {
			return err
		}
	}
	return nil
}

// removeEntry removes one, also if it was changed meanwhile: whoever writes it does not know yet that nobody wants it.
func (k *Registry) removeEntry(ctx context.Context, g processor.Group, f processor.Entry) error {
	for range mirror.MaxTries {
		err := k.cfg.Groups.Remove(ctx, g, f)
		if !errors.Is(err, processor.ErrConflict) {
			return err
		}
		there, err := k.cfg.Groups.Entries(ctx, g, f.Key[:strings.LastIndex(f.Key, "/")+1])
		if err != nil {
			return err
		}
		found := false
		for _, one := range there {
			if one.Key == f.Key {
				f, found = one, true
			}
		}
		if !found {
			return nil
		}
	}
	return fmt.Errorf("others keep changing %q: %w", f.Key, processor.ErrConflict)
}
