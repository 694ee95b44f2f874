package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// checkpointRecord is the value of a checkpoint.
type checkpointRecord struct {
	Sequence int64     `json:"sequence"` // -1: not known
	Offset   string    `json:"offset,omitempty"`
	Epoch    int64     `json:"epoch,omitempty"` // under which it was saved
	HubID    string    `json:"hub,omitempty"`
	Updated  time.Time `json:"updated"`
	// Fence is the epoch of the last Begin: nothing is saved under a lower one.
	Fence int64 `json:"fence,omitempty"`
}

func newCheckpointRecord(c processor.Checkpoint, fence int64) checkpointRecord {
	return checkpointRecord{c.Sequence, c.Offset, c.Epoch, c.HubID, c.Updated, fence}
}

func (r checkpointRecord) checkpoint(partition string, version processor.Version) processor.Checkpoint {
	return processor.Checkpoint{
		Partition: partition, Sequence: r.Sequence, Offset: r.Offset, Epoch: r.Epoch, HubID: r.HubID,
		Updated: r.Updated, Version: version,
	}
}

func parseCheckpoint(key string, e entry) (checkpointRecord, error) {
	r := checkpointRecord{Sequence: -1}
	if e.version() == "" {
		return r, nil
	}
	if err := json.Unmarshal(e.value, &r); err != nil {
		return r, fmt.Errorf("key %s: %w", key, err)
	}
	return r, nil
}

// Checkpoints also gives what Begin has left of partitions that have no checkpoint yet: an
// operator needs their version.
func (s *store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	found, err := s.read(ctx, folder(g)+"checkpoint.*")
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	all := make([]processor.Checkpoint, 0, len(found))
	for key, e := range found {
		r, err := parseCheckpoint(key, e)
		if err != nil {
			return nil, fmt.Errorf("read checkpoints: %w", err)
		}
		all = append(all, r.checkpoint(text(key[strings.LastIndexByte(key, '.')+1:]), e.version()))
	}
	return all, nil
}

// Begin writes its epoch into the checkpoint's record, which it makes if there is none.
func (s *store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	for {
		r, version, err := s.owned(ctx, g, l)
		if err == nil {
			r.Fence = l.Epoch
			if version == "" {
				r.Updated = now()
			}
			version, err = s.put(ctx, g, l.Partition, r, version)
		}
		switch {
		case err == nil:
			return r.checkpoint(l.Partition, version), nil
		case !errors.Is(err, processor.ErrConflict): // else a former owner or an operator was faster
			return processor.Checkpoint{}, fmt.Errorf("begin partition %s: %w", l.Partition, err)
		}
	}
}

// Save looks at the lease and at the fence, and then writes on condition of the version. If
// the record is in that version, the fence that was read is the record's.
func (s *store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	_, version, err := s.owned(ctx, g, l)
	if err == nil && version != c.Version {
		err = processor.ErrConflict
	}
	if err == nil {
		c.Partition, c.Epoch, c.Updated = l.Partition, l.Epoch, now()
		c.Version, err = s.put(ctx, g, l.Partition, newCheckpointRecord(c, l.Epoch), c.Version)
	}
	if errors.Is(err, processor.ErrConflict) {
		if _, _, lost := s.owned(ctx, g, l); lost != nil {
			err = lost
		}
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("save checkpoint of partition %s: %w", l.Partition, err)
	}
	return c, nil
}

// owned reads the lease and the checkpoint of one moment. ErrFenced if the lease is another.
func (s *store) owned(ctx context.Context, g processor.Group, l processor.Lease) (checkpointRecord, processor.Version, error) {
	leaseKey, key := leaseKey(g, l.Partition), checkpointKey(g, l.Partition)
	found, err := s.read(ctx, leaseKey, key)
	if err != nil {
		return checkpointRecord{}, "", err
	}
	var recorded processor.Lease
	if e := found[leaseKey]; e.version() != "" {
		if recorded, err = newLease(leaseKey, e); err != nil {
			return checkpointRecord{}, "", err
		}
	}
	r, err := parseCheckpoint(key, found[key])
	if err != nil {
		return checkpointRecord{}, "", err
	}
	if l.Owner == "" || recorded.Owner != l.Owner || recorded.Epoch != l.Epoch || r.Fence > l.Epoch {
		return checkpointRecord{}, "", processor.ErrFenced
	}
	return r, found[key].version(), nil
}

// Force keeps the fence: who could not save before cannot after.
func (s *store) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	key := checkpointKey(g, c.Partition)
	found, err := s.read(ctx, key)
	var r checkpointRecord
	if err == nil {
		r, err = parseCheckpoint(key, found[key])
	}
	if err == nil && found[key].version() != c.Version {
		err = processor.ErrConflict
	}
	if err == nil {
		c.Epoch, c.Updated = 0, now()
		c.Version, err = s.put(ctx, g, c.Partition, newCheckpointRecord(c, r.Fence), c.Version)
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("force checkpoint of partition %s: %w", c.Partition, err)
	}
	return c, nil
}

func (s *store) put(ctx context.Context, g processor.Group, partition string, r checkpointRecord, version processor.Version) (processor.Version, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	return s.write(ctx, checkpointKey(g, partition), value, version)
}
