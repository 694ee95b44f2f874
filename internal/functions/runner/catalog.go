package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// catalog is the stored definitions, and what else is stored of a function. Its fields never
// change.
type catalog struct {
	cfg         Config
	log         *slog.Logger
	definitions *mirror.Table[*entry]
	groups      groupsInUse
}

// put stores an entry in place of what was read before, and gives what is in use then.
func (k *catalog) put(ctx context.Context, e *entry) (*entry, error) {
	stored, err := k.definitions.Put(ctx, e.item())
	return stored.Value, err
}

// get reads one from the store, also one that is being deleted. The name has to be spelled as it
// is.
func (k *catalog) get(ctx context.Context, name string) (*entry, error) {
	if !wellNamed(name) {
		return nil, fmt.Errorf("%w: %.120q", ErrNotFound, name)
	}
	there, err := k.definitions.Read(ctx, keyOf(name))
	if errors.Is(err, meta.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q: `eventyard function list` shows all", ErrNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read function %q: %w", name, err)
	}
	return there.Value, nil
}

// find reads one that users see.
func (k *catalog) find(ctx context.Context, name string) (*entry, error) {
	e, err := k.get(ctx, name)
	if err == nil && e.Name != name && e.problem == nil {
		return nil, fmt.Errorf("%w: %q: there is %q, and case matters here", ErrNotFound, name, e.Name)
	}
	if err == nil && e.Deleting {
		return nil, fmt.Errorf("%w: %q: it is being deleted", ErrNotFound, name)
	}
	return e, err
}

// all reads all of them, also those that are being deleted, by name.
func (k *catalog) all(ctx context.Context) ([]*entry, error) {
	items, err := k.definitions.List(ctx, keyPrefix)
	all := make([]*entry, len(items))
	for i, item := range items {
		all[i] = item.Value
	}
	return all, err
}

// known is what this node knows of a key; nil: there is no such function.
func (k *catalog) known(key string) *entry {
	there, _ := k.definitions.Get(key)
	return there.Value
}

// provide makes what the function needs and may not be there: its group, and the default target of
// poison. That keeps poison events for ever: they are few, and nobody should lose one for having
// been on holiday.
func (k *catalog) provide(ctx context.Context, d Definition) error {
	if _, err := k.cfg.Broker.CreateGroup(ctx, d.Hub, d.Group); err != nil && !errors.Is(err, broker.ErrGroupExists) {
		if errors.Is(err, broker.ErrInvalidName) {
			return invalid("%w", err)
		}
		return err
	}
	if !d.ownPoison() {
		return nil
	}
	_, err := k.cfg.Broker.CreateHub(ctx, broker.HubConfig{Name: d.Poison, Partitions: 1, Age: new(time.Duration(0))})
	switch {
	case errors.Is(err, broker.ErrHubExists):
		return nil
	case errors.Is(err, broker.ErrInvalidName), errors.Is(err, broker.ErrReservedName):
		return invalid("poison: hub %q cannot be made: %w: name another target for poison, topic:NAME, or none", d.Poison, err)
	}
	return err
}

// finish removes what a function has left and then its definition, which is marked. It may be done
// twice, and by several at once: once the definition is gone, entries of that name are those of the
// next function.
func (k *catalog) finish(ctx context.Context, e *entry) error {
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

// workPrefix is that of the entries about a function's work (functions.Host writes them).
const workPrefix = "work/"

// forget removes the entries of a function: circuit, counts and work. Where the group is gone they
// are too.
func (k *catalog) forget(ctx context.Context, d Definition) error {
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
		entries, err := k.cfg.Groups.Entries(ctx, g, of.prefix)
		for _, f := range entries {
			if err == nil && (of.only == "" || f.Key == of.only) {
				err = k.removeEntry(ctx, g, f)
			}
		}
		if unlessGone(err) != nil {
			return fmt.Errorf("remove entries of function %q: %w", d.Name, err)
		}
	}
	return nil
}

// removeEntry removes one, also if it was changed meanwhile: whoever writes it does not know yet
// that nobody wants it.
func (k *catalog) removeEntry(ctx context.Context, g processor.Group, f processor.Entry) error {
	for range mirror.MaxTries {
		err := k.cfg.Groups.Remove(ctx, g, f)
		if !errors.Is(err, processor.ErrConflict) {
			return err
		}
		there, err := k.cfg.Groups.Entries(ctx, g, f.Key[:strings.LastIndex(f.Key, "/")+1])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(there, func(one processor.Entry) bool { return one.Key == f.Key })
		if i < 0 {
			return nil
		}
		f = there[i]
	}
	return fmt.Errorf("others keep changing %q: %w", f.Key, processor.ErrConflict)
}
