package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/processor"
)

// checkpointRecord is a checkpoint as the scripts write it.
type checkpointRecord struct {
	Sequence int64  `json:"sequence,string"`
	Offset   string `json:"offset"`
	Epoch    int64  `json:"epoch,string"`
	HubID    string `json:"hub"`
	Updated  string `json:"updated"`
	Version  string `json:"version"`
}

func parseCheckpoint(partition, text string) (processor.Checkpoint, error) {
	var r checkpointRecord
	err := json.Unmarshal([]byte(text), &r)
	updated, bad := clock(r.Updated)
	if err := errors.Join(err, bad); err != nil {
		return processor.Checkpoint{}, fmt.Errorf("checkpoint of partition %s: %w", partition, err)
	}
	return processor.Checkpoint{
		Partition: partition, Sequence: r.Sequence, Offset: r.Offset, Epoch: r.Epoch, HubID: r.HubID,
		Updated: updated, Version: processor.Version(r.Version),
	}, nil
}

func (s *Store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	records, err := s.all(ctx, s.checkpoints(g))
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of %s/%s: %w", g.Hub, g.Group, err)
	}
	all := make([]processor.Checkpoint, 0, len(records))
	for partition, text := range records {
		c, err := parseCheckpoint(partition, text)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (s *Store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	text, err := s.write(ctx, beginScript, []string{s.leases(g), s.checkpoints(g)}, l.Partition, l.Owner, number(l.Epoch))
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("begin %s/%s/%s: %w", g.Hub, g.Group, l.Partition, err)
	}
	if text == "" {
		return processor.Checkpoint{Partition: l.Partition, Sequence: -1}, nil
	}
	return parseCheckpoint(l.Partition, text)
}

func (s *Store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	c.Partition = l.Partition
	got, err := s.save(ctx, g, c, l.Owner, number(l.Epoch))
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("save checkpoint %d of %s/%s/%s: %w", c.Sequence, g.Hub, g.Group, c.Partition, err)
	}
	return got, nil
}

func (s *Store) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	got, err := s.save(ctx, g, c, "", "")
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("move checkpoint of %s/%s/%s: %w", g.Hub, g.Group, c.Partition, err)
	}
	return got, nil
}

func (s *Store) save(ctx context.Context, g processor.Group, c processor.Checkpoint, owner, epoch string) (processor.Checkpoint, error) {
	text, err := s.write(ctx, saveScript, []string{s.leases(g), s.checkpoints(g)},
		c.Partition, owner, epoch, string(c.Version), newVersion(), number(c.Sequence), c.Offset, c.HubID)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	return parseCheckpoint(c.Partition, text)
}
