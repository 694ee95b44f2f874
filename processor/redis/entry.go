package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/processor"
)

func (s *Store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if err := groupentry.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	records, err := s.all(ctx, s.entries(g))
	if err != nil {
		return nil, fmt.Errorf("read entries %s of %s/%s: %w", prefix, g.Hub, g.Group, err)
	}
	var entries []processor.Entry
	for key, text := range records {
		if strings.HasPrefix(key, prefix) {
			version, value, _ := strings.Cut(text, " ")
			entries = append(entries, processor.Entry{Key: key, Value: []byte(value), Version: processor.Version(version)})
		}
	}
	return entries, nil
}

func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	if err := groupentry.Check(f.Key, f.Value); err != nil {
		return processor.Entry{}, err
	}
	version := newVersion()
	if err := s.put(ctx, g, f, version, f.Value); err != nil {
		return processor.Entry{}, fmt.Errorf("put entry %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	f.Version = processor.Version(version)
	return f, nil
}

func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	if f.Version == "" {
		return errors.New("remove an entry: it has no version")
	}
	if err := s.put(ctx, g, f, ""); err != nil {
		return fmt.Errorf("remove entry %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	return nil
}

// put gives the entry a value, or none.
func (s *Store) put(ctx context.Context, g processor.Group, f processor.Entry, version string, value ...[]byte) error {
	args := []any{s.channel(g), f.Key, string(f.Version), version}
	for _, v := range value {
		args = append(args, v)
	}
	_, err := s.write(ctx, putScript, []string{s.entries(g)}, args...)
	return err
}
