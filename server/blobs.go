package server

import (
	"context"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/processor"
)

// openBlobs opens the blobs, in the data folder or where all nodes have them.
func (y *yard) openBlobs() (err error) {
	cfg := blob.Config{Meta: y.storage.Meta, Tends: y.tendsBodies, Log: y.cfg.Log}
	if y.storage.Bodies != nil {
		cfg.Bodies = y.storage.Bodies
	} else {
		cfg.FS = vfs.OS(filepath.Join(y.storage.Folder, blobDir))
	}
	y.blobs, err = blob.Open(cfg)
	return err
}

// blobCheckpoints gives the checkpoints of a group that processors of other libraries keep in the blobs.
func (y *yard) blobCheckpoints(ctx context.Context, hub, group string) ([]groups.Foreign, error) {
	found, err := y.blobs.Checkpoints(ctx, hub, group)
	all := make([]groups.Foreign, len(found))
	for i, c := range found {
		all[i] = groups.Foreign{Container: c.Container, Checkpoint: processor.Checkpoint{
			Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset, Updated: c.Saved,
		}}
	}
	return all, err
}
