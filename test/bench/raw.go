package main

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// rawWrites is what the machine does without an engine: each writer appends blocks of
// 100 events' bytes to its own growing file. With sync, each block is synced
// (fdatasync) before the next one is written; without, its CRC-32C is computed.
func rawWrites(sync bool) contender {
	name := "raw: 16 files, a writer each, CRC-32C of each block of 100 KiB"
	if sync {
		name = "raw: 16 files, a writer each, one fdatasync per block of 100 KiB"
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	return contender{name, func(ctx context.Context, dir string, lim limit) (tally, error) {
		block := randomBytes(batchEvents * eventBytes)
		files := make([]vfs.File, partitions)
		offsets := make([]int64, partitions)
		for i := range files {
			f, err := vfs.OS(dir).Create(fmt.Sprint(i))
			if err != nil {
				return tally{}, err
			}
			defer f.Close()
			files[i] = f
		}
		sums := make([]uint32, partitions)
		return drive(ctx, lim, job{writers: partitions, events: batchEvents, bytes: len(block),
			do: func(_ context.Context, w int) error {
				if !sync {
					sums[w] ^= crc32.Checksum(block, table)
				}
				if _, err := files[w].WriteAt(block, offsets[w]); err != nil {
					return err
				}
				offsets[w] += int64(len(block))
				if !sync {
					return nil
				}
				return files[w].Sync()
			}})
	}}
}
