package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/meta"
	"github.com/eventyard/eventyard/processor"
)

// Watch tells of changes until ctx ends. It ends with a *broker.NotFoundError when it sees
// records go because the group was deleted: one of the same name that comes after it has other
// records. Saved checkpoints are no change, or every save would wake all instances.
func (k *Keeper) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	at, err := k.find(ctx, g)
	if err != nil {
		return err
	}
	watch, err := k.meta.Watch(ctx, at.Prefix)
	if err != nil {
		return fmt.Errorf("watch group: %w", err)
	}
	if _, err := watch.Next(); err != nil { // what there is, which the caller reads
		return watchError(ctx, err)
	}
	ready()
	for {
		changes, err := watch.Next()
		if err != nil {
			return watchError(ctx, err)
		}
		tell(at, changes, changed)
		if anyDeleted(changes) && k.broker.GroupGone(ctx, at.GroupRecords) {
			return at.gone()
		}
	}
}

func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("watch group: %w", err)
}

// tell passes on that leases or facts have changed, if any has.
func tell(at place, changes []meta.Change, changed chan<- struct{}) {
	told := slices.ContainsFunc(changes, func(c meta.Change) bool { return !strings.HasPrefix(c.Key, at.checkpoints()) })
	if !told {
		return
	}
	select {
	case changed <- struct{}{}:
	default: // it has yet to hear of an earlier one and will read both
	}
}

func anyDeleted(changes []meta.Change) bool {
	return slices.ContainsFunc(changes, func(c meta.Change) bool { return c.Deleted })
}
