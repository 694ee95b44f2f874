package memory

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/processor"
)

func (s *Store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if err := groupentry.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var all []processor.Entry
	for key, f := range r.entries {
		if strings.HasPrefix(key, prefix) {
			f.Value = slices.Clone(f.Value)
			all = append(all, f)
		}
	}
	return all, nil
}

func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	if err := groupentry.Check(f.Key, f.Value); err != nil {
		return processor.Entry{}, err
	}
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return processor.Entry{}, err
	}
	had, exists := r.entries[f.Key]
	if had.Version != f.Version {
		return processor.Entry{}, processor.ErrConflict
	}
	f.Version, _ = s.nextLocked()
	stored := f
	stored.Value = slices.Clone(f.Value)
	r.entries[f.Key] = stored
	if !exists || !bytes.Equal(had.Value, f.Value) {
		r.notify()
	}
	return f, nil
}

func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	if f.Version == "" {
		return errors.New("an entry is removed in the version that was read")
	}
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if r.entries[f.Key].Version != f.Version {
		return processor.ErrConflict
	}
	delete(r.entries, f.Key)
	r.notify()
	return nil
}
