package azblob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/legacy"
)

// Checkpoints reads the checkpoint blobs, and with Config.Legacy the older ones of
// partitions that have none.
func (s *store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	folder, err := s.reading(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	records, err := s.blobs.list(ctx, folder+"checkpoint/")
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	all := make(map[string]processor.Checkpoint, len(records))
	for _, r := range records {
		if all[r.partition()], err = newCheckpoint(r); err != nil {
			return nil, fmt.Errorf("read checkpoints: %w", err)
		}
	}
	if s.cfg.Legacy {
		if err := s.addOlder(ctx, g, all); err != nil {
			return nil, fmt.Errorf("read older checkpoints: %w", err)
		}
	}
	return slices.Collect(maps.Values(all)), nil
}

// Begin reads the checkpoint, then looks whether the lease still stands, then writes the checkpoint
// again, unchanged. The order matters: whoever has taken the partition and begun before the first
// step is seen in the second, and whoever begins after the first makes the third fail.
func (s *store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	folder, err := s.writing(ctx, g)
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("begin partition %s: %w", l.Partition, err)
	}
	for {
		c, err := s.begin(ctx, g, folder, l)
		if errors.Is(err, processor.ErrConflict) {
			continue // written between the steps, by a former owner or an operator
		}
		if err != nil {
			return processor.Checkpoint{}, fmt.Errorf("begin partition %s: %w", l.Partition, err)
		}
		return c, nil
	}
}

func (s *store) begin(ctx context.Context, g processor.Group, folder string, l processor.Lease) (processor.Checkpoint, error) {
	r, err := s.blobs.head(ctx, checkpointBlob(folder, l.Partition))
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if err := s.owned(ctx, folder, l); err != nil {
		return processor.Checkpoint{}, err
	}
	if r.version == "" {
		c, found := processor.Checkpoint{}, false
		if s.cfg.Legacy {
			c, found, err = readLease(ctx, s.blobs, s.olderFolder(g)+l.Partition, l.Partition)
		}
		if !found {
			c = processor.Checkpoint{Partition: l.Partition, Sequence: -1}
		}
		return c, err // without a version: a save creates the blob of today
	}
	if r, err = s.blobs.write(ctx, r.name, r.meta, r.version); err != nil {
		return processor.Checkpoint{}, err
	}
	return newCheckpoint(r)
}

// Save looks at the lease first, since a foreign owner fences nobody, and then writes on
// condition of the version, which is what counts.
func (s *store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	folder, err := s.writing(ctx, g)
	if err == nil {
		err = s.owned(ctx, folder, l)
	}
	if err == nil {
		c.Partition = l.Partition
		c, err = s.put(ctx, folder, c)
	}
	if errors.Is(err, processor.ErrConflict) {
		if lost := s.owned(ctx, folder, l); lost != nil {
			err = lost
		}
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("save checkpoint of partition %s: %w", l.Partition, err)
	}
	return c, nil
}

func (s *store) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	folder, err := s.writing(ctx, g)
	if err == nil {
		c, err = s.put(ctx, folder, c)
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("force checkpoint of partition %s: %w", c.Partition, err)
	}
	return c, nil
}

// put writes a checkpoint over the version it has.
func (s *store) put(ctx context.Context, folder string, c processor.Checkpoint) (processor.Checkpoint, error) {
	r, err := s.blobs.write(ctx, checkpointBlob(folder, c.Partition), checkpointMeta(c), c.Version)
	if err != nil {
		return c, err
	}
	c.Version, c.Updated, c.Epoch, c.HubID = r.version, r.modified, 0, ""
	return c, nil
}

// checkpointMeta always has both keys, as the Go SDK reads nothing of a group one of
// whose checkpoints lacks one. What is not known is written as .NET writes it.
func checkpointMeta(c processor.Checkpoint) map[string]string {
	meta := map[string]string{"sequencenumber": strconv.FormatInt(c.Sequence, 10), "offset": c.Offset}
	if c.Sequence < 0 {
		meta["sequencenumber"] = strconv.FormatInt(math.MinInt64, 10)
	}
	if c.Offset == "" {
		meta["offset"] = legacy.NoOffset
	}
	return meta
}

func newCheckpoint(r record) (processor.Checkpoint, error) {
	c, err := legacy.Metadata(r.partition(), r.meta)
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("blob %s: %w", r.name, err)
	}
	c.Updated, c.Version = r.modified, r.version
	return c, nil
}

func checkpointBlob(folder, partition string) string { return folder + "checkpoint/" + partition }

// maxLegacy bounds the body of a checkpoint of an older format.
const maxLegacy = 64 << 10

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
