package memory

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/fact"
	"github.com/eventyard/eventyard/processor"
)

// Facts reads the facts whose key begins with prefix.
func (s *Store) Facts(ctx context.Context, g processor.Group, prefix string) ([]processor.Fact, error) {
	if err := fact.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var all []processor.Fact
	for key, f := range r.facts {
		if strings.HasPrefix(key, prefix) {
			f.Value = slices.Clone(f.Value)
			all = append(all, f)
		}
	}
	return all, nil
}

// Put stores a fact on condition of its version.
func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Fact) (processor.Fact, error) {
	if err := fact.Check(f.Key, f.Value); err != nil {
		return processor.Fact{}, err
	}
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return processor.Fact{}, err
	}
	had, exists := r.facts[f.Key]
	if had.Version != f.Version {
		return processor.Fact{}, processor.ErrConflict
	}
	f.Version, _ = s.nextLocked()
	stored := f
	stored.Value = slices.Clone(f.Value)
	r.facts[f.Key] = stored
	if !exists || !bytes.Equal(had.Value, f.Value) {
		r.tell()
	}
	return f, nil
}

// Remove deletes a fact on condition of its version.
func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Fact) error {
	if f.Version == "" {
		return errors.New("a fact is removed in the version that was read")
	}
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if r.facts[f.Key].Version != f.Version {
		return processor.ErrConflict
	}
	delete(r.facts, f.Key)
	r.tell()
	return nil
}
