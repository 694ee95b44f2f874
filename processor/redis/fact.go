package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/fact"
	"github.com/eventyard/eventyard/processor"
)

// Facts reads the facts whose key begins with prefix.
func (s *Store) Facts(ctx context.Context, g processor.Group, prefix string) ([]processor.Fact, error) {
	if err := fact.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	records, err := s.all(ctx, s.facts(g))
	if err != nil {
		return nil, fmt.Errorf("read facts %s of %s/%s: %w", prefix, g.Hub, g.Group, err)
	}
	var facts []processor.Fact
	for key, text := range records {
		if strings.HasPrefix(key, prefix) {
			version, value, _ := strings.Cut(text, " ")
			facts = append(facts, processor.Fact{Key: key, Value: []byte(value), Version: processor.Version(version)})
		}
	}
	return facts, nil
}

// Put stores a fact on condition of its version.
func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Fact) (processor.Fact, error) {
	if err := fact.Check(f.Key, f.Value); err != nil {
		return processor.Fact{}, err
	}
	version := newVersion()
	if err := s.put(ctx, g, f, version, f.Value); err != nil {
		return processor.Fact{}, fmt.Errorf("put fact %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	f.Version = processor.Version(version)
	return f, nil
}

// Remove deletes a fact on condition of its version.
func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Fact) error {
	if f.Version == "" {
		return errors.New("remove a fact: it has no version")
	}
	if err := s.put(ctx, g, f, ""); err != nil {
		return fmt.Errorf("remove fact %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	return nil
}

// put gives the fact a value, or none.
func (s *Store) put(ctx context.Context, g processor.Group, f processor.Fact, version string, value ...[]byte) error {
	args := []any{s.channel(g), f.Key, string(f.Version), version}
	for _, v := range value {
		args = append(args, v)
	}
	_, err := s.write(ctx, putScript, []string{s.facts(g)}, args...)
	return err
}
