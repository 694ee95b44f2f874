package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// recalling is an engine whose storage several nodes share. It knows, for some days, which logs were
// removed so long ago that every node has heard of it.
type recalling interface {
	Removed(ctx context.Context) (logs []string, err error)
}

// leftInterval is how often entries of removed logs are looked for.
const leftInterval = time.Hour

// clearLeft removes, until ctx ends, entries that were written about hubs after these had been deleted: by
// a node that had not heard of it, and ended before it could take them back. An engine of one process has
// nothing to tell.
func clearLeft(ctx context.Context, b *Broker) {
	engine, shared := b.engine.(recalling)
	for shared && sleep.About(ctx, leftInterval) == nil {
		if err := clearLeftOnce(ctx, b, engine); err != nil && ctx.Err() == nil {
			b.log.Warn("entries of deleted hubs may be left, looking again later", "error", err)
		}
	}
}

func clearLeftOnce(ctx context.Context, b *Broker, engine recalling) error {
	logs, err := engine.Removed(ctx)
	if err != nil {
		return err
	}
	for _, log := range logs {
		if !b.ledgers.isKept(eventlog.PartitionID{Log: log}) {
			continue // another node does it
		}
		for _, prefix := range logEntries(log) {
			left, err := b.meta.List(ctx, prefix)
			if err != nil {
				return err
			}
			for _, e := range left {
				if err := b.meta.Delete(ctx, e.Key, e.Revision); err != nil && !mirror.GoneOrChanged(err) {
					return fmt.Errorf("delete %s: %w", e.Key, err)
				}
			}
			if len(left) > 0 {
				b.log.Info("entries of a deleted hub were left, and are removed", "log", log, "entries", len(left))
			}
		}
	}
	return nil
}

// logEntries are the prefixes of all that the store has about a hub beside its definition, by its log.
func logEntries(log string) []string {
	return []string{groupKeys(log), hubRecordKeys(log), producerKeys(log), hubSlotKeys(log), KafkaOffsetKeys(log)}
}
