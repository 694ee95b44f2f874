package natskv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/processor"
)

func (s *store) Facts(ctx context.Context, g processor.Group, prefix string) ([]processor.Fact, error) {
	filter, err := factsUnder(g, prefix)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	found, err := s.read(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("read facts %s: %w", prefix, err)
	}
	var facts []processor.Fact
	for key, e := range found {
		if !e.removed {
			facts = append(facts, processor.Fact{Key: factOf(g, key), Value: e.value, Version: e.version()})
		}
	}
	return facts, nil
}

func (s *store) Put(ctx context.Context, g processor.Group, f processor.Fact) (processor.Fact, error) {
	err := checkFact(f)
	if err == nil {
		f.Version, err = s.write(ctx, factPath(g, f.Key), f.Value, f.Version)
	}
	if err != nil {
		return processor.Fact{}, fmt.Errorf("put fact %s: %w", f.Key, err)
	}
	return f, nil
}

func (s *store) Remove(ctx context.Context, g processor.Group, f processor.Fact) error {
	err := checkFact(processor.Fact{Key: f.Key})
	if err == nil && f.Version == "" {
		err = errors.New("without its version")
	}
	if err == nil {
		err = s.remove(ctx, factPath(g, f.Key), f.Version)
	}
	if err != nil {
		return fmt.Errorf("remove fact %s: %w", f.Key, err)
	}
	return nil
}

// factOf gives a fact's key.
func factOf(g processor.Group, key string) string {
	segments := strings.Split(strings.TrimPrefix(key, folder(g)+"fact."), ".")
	for i, s := range segments {
		segments[i] = text(s)
	}
	return strings.Join(segments, "/")
}
