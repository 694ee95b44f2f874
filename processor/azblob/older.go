package azblob

import (
	"context"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/processor"
)

// maxLegacy bounds the body of a checkpoint of an older format.
const maxLegacy = 64 << 10

// older gives a partition's checkpoint of before, where none of today exists.
func (s *store) older(ctx context.Context, g processor.Group, partition string) (processor.Checkpoint, error) {
	none := processor.Checkpoint{Partition: partition, Sequence: -1}
	if !s.cfg.Legacy {
		return none, nil
	}
	c, found, err := readLease(ctx, s.blobs, s.olderFolder(g)+partition, partition)
	if err != nil || !found {
		return none, err
	}
	return c, nil // without a version: a save creates the blob of today
}

// addOlder adds the checkpoints of before for partitions that have none of today.
func (s *store) addOlder(ctx context.Context, g processor.Group, all map[string]processor.Checkpoint) error {
	records, err := s.blobs.list(ctx, s.olderFolder(g))
	if err != nil {
		return err
	}
	for _, r := range records {
		p := strings.TrimPrefix(r.name, s.olderFolder(g))
		if _, newer := all[p]; newer || p == "" || strings.Contains(p, "/") {
			continue
		}
		c, found, err := readLease(ctx, s.blobs, r.name, p)
		if err != nil {
			return fmt.Errorf("blob %s: %w", r.name, err)
		}
		if found {
			all[p] = c
		}
	}
	return nil
}
