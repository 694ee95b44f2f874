package azblob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/legacy"
)

// ImportConfig says which checkpoints are imported and where to.
type ImportConfig struct {
	// Group is the group into which the checkpoints go. Its hub and group name, in the case given,
	// are also what the older names are made of.
	Group processor.Group
	// Prefix is what all names of the host's blobs begin with; empty is the usual.
	Prefix string
	// Overwrite replaces checkpoints that are there already, however new they are. Otherwise only
	// those that are known to be behind the imported ones are replaced.
	Overwrite bool
}

// Imported is what became of one checkpoint.
type Imported struct {
	// Checkpoint is the one found; Had the one that was there before, without a version if
	// there was none.
	Checkpoint, Had processor.Checkpoint
	// Written says whether it was written; if not, Had was kept.
	Written bool
}

// Import reads the checkpoints that an Event Processor Host has left in a container and
// forces them into a store of any kind. Names of all hosts are known:
//
//	{prefix}{group}/{partition}           .NET, Java, Python
//	{prefix}{partition}                   Go
//	{prefix}dapr-{hub}-{group}-{partition}  Dapr
//
// The host has to be stopped first. Everything is read before anything is written: a blob that
// cannot be understood is an error, and nothing is imported then. Doing it again does no harm.
func Import(ctx context.Context, from *container.Client, cfg ImportConfig, into processor.Store) ([]Imported, error) {
	found, err := readHost(ctx, blobs{from}, cfg)
	if err != nil {
		return nil, fmt.Errorf("import checkpoints: %w", err)
	}
	present, err := into.Checkpoints(ctx, cfg.Group)
	if err != nil {
		return nil, fmt.Errorf("import checkpoints: %w", err)
	}
	had := make(map[string]processor.Checkpoint, len(present))
	for _, c := range present {
		had[c.Partition] = c
	}
	var done []Imported
	for _, c := range found {
		one := Imported{Checkpoint: c, Had: processor.Checkpoint{Partition: c.Partition, Sequence: -1}}
		if old, has := had[c.Partition]; has {
			one.Had = old
		}
		nowhere := one.Had.Sequence < 0 && one.Had.Offset == ""
		behind := one.Had.Sequence >= 0 && one.Had.Sequence < c.Sequence
		if cfg.Overwrite || nowhere || behind {
			c.Version = one.Had.Version
			if one.Checkpoint, err = into.Force(ctx, cfg.Group, c); err != nil {
				return done, fmt.Errorf("import checkpoints: %w", err)
			}
			one.Written = true
		}
		done = append(done, one)
	}
	return done, nil
}

// readHost reads the checkpoints of a host, in the order of their blobs' names.
func readHost(ctx context.Context, b blobs, cfg ImportConfig) ([]processor.Checkpoint, error) {
	records, err := b.list(ctx, cfg.Prefix)
	if err != nil {
		return nil, err
	}
	var found []processor.Checkpoint
	for _, r := range records {
		partition, is := cfg.partition(r.name)
		if !is {
			continue
		}
		c, has, err := readLease(ctx, b, r.name, partition)
		if err != nil {
			return nil, fmt.Errorf("blob %s: %w", r.name, err)
		}
		if !has {
			continue
		}
		if slices.ContainsFunc(found, func(o processor.Checkpoint) bool { return o.Partition == partition }) {
			return nil, fmt.Errorf("partition %s has checkpoints of two hosts: name one by its prefix", partition)
		}
		found = append(found, c)
	}
	return found, nil
}

// partition gives the partition whose lease has this name.
func (cfg ImportConfig) partition(name string) (string, bool) {
	rest := strings.TrimPrefix(name, cfg.Prefix)
	p, is := legacy.DaprPartition(rest, cfg.Group.Hub, cfg.Group.Group)
	if !is {
		// Without a group before it, it is the host's for Go.
		p = strings.TrimPrefix(rest, cfg.Group.Group+"/")
	}
	return p, p != "" && strings.Trim(p, "0123456789") == ""
}

// readLease reads the checkpoint in a host's lease, and reports whether it has one.
func readLease(ctx context.Context, b blobs, name, partition string) (processor.Checkpoint, bool, error) {
	r, body, err := b.get(ctx, name, maxLegacy)
	if err != nil || r.version == "" {
		return processor.Checkpoint{}, false, err
	}
	l, err := legacy.Parse(body)
	if err != nil {
		return processor.Checkpoint{}, false, err
	}
	if l.Partition != "" && l.Partition != partition {
		return processor.Checkpoint{}, false, errors.New("the text in it is of partition " + l.Partition)
	}
	c, has := l.Checkpoint(partition)
	c.Updated = r.modified
	return c, has, nil
}
