package natskv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/processor"
)

func (s *store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if err := groupentry.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	filter := folder(g) + "fact.>"
	if prefix != "" {
		filter = entryPath(g, strings.TrimSuffix(prefix, "/")) + ".>"
	}
	found, err := s.read(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("read entries %s: %w", prefix, err)
	}
	var entries []processor.Entry
	for key, e := range found {
		if !e.removed {
			segments := strings.Split(strings.TrimPrefix(key, folder(g)+"fact."), ".")
			for i, s := range segments {
				segments[i] = text(s)
			}
			entries = append(entries, processor.Entry{Key: strings.Join(segments, "/"), Value: e.value, Version: e.version()})
		}
	}
	return entries, nil
}

func (s *store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	err := groupentry.Check(f.Key, f.Value)
	if err == nil {
		f.Version, err = s.write(ctx, entryPath(g, f.Key), f.Value, f.Version)
	}
	if err != nil {
		return processor.Entry{}, fmt.Errorf("put entry %s: %w", f.Key, err)
	}
	return f, nil
}

func (s *store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	err := groupentry.CheckKey(f.Key)
	if err == nil && f.Version == "" {
		err = errors.New("without its version")
	}
	if err == nil {
		err = s.remove(ctx, entryPath(g, f.Key), f.Version)
	}
	if err != nil {
		return fmt.Errorf("remove entry %s: %w", f.Key, err)
	}
	return nil
}
