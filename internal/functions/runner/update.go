package runner

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Update changes a function. change gets the definition as it is stored, which has what was said
// and not what follows from it, and is asked again where others change it at the same time; its
// errors are given back. Name, hub and group stay.
//
// Errors: ErrNotFound, ErrInvalid, the store's.
func (k *Registry) Update(ctx context.Context, name string, change func(*Definition) error) (f Function, err error) {
	var e *entry
	err = mirror.Uncontested(ctx, func() (err error) {
		e, err = k.update(ctx, name, change)
		return err
	})
	if err != nil {
		return Function{}, fmt.Errorf("change function %.120q: %w", name, err)
	}
	return k.function(ctx, e, true), nil
}

func (k *Registry) update(ctx context.Context, name string, change func(*Definition) error) (*entry, error) {
	there, err := k.find(ctx, name)
	if err == nil {
		err = there.problem
	}
	if err != nil {
		return nil, err
	}
	d := there.Definition
	if err := change(&d); err != nil {
		return nil, err
	}
	if d, err = k.vet(d); err != nil {
		return nil, err
	}
	if d.Name != there.Name || !sameGroup(d.group(""), there.group("")) {
		return nil, invalid("name, hub and group of a function cannot be changed: create another function, and delete this one")
	}
	return k.change(ctx, there, d)
}

// change stores another definition in a function's place, which reads the same group. It gives what
// is stored then.
func (k *Registry) change(ctx context.Context, there *entry, d Definition) (*entry, error) {
	d.Created, d.Since = there.Created, d.since(there.Definition)
	if sameDefinition(d, there.Definition) {
		return there, nil
	}
	if err := k.provide(ctx, d); err != nil {
		return nil, err
	}
	e := *there
	e.Definition = d
	changed, err := k.put(ctx, &e)
	if err != nil {
		return nil, err
	}
	k.log.Info("function changed", "function", d.Name)
	return changed, nil
}
