package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Watch tells of changes until ctx ends. It ends with a *broker.NotFoundError when it sees
// records go because the group was deleted: one of the same name that comes after it has other
// records. Saved checkpoints are no change, nor are renewals, or each would wake all instances.
func (k *Registry) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	at, err := k.find(ctx, g)
	if err != nil {
		return err
	}
	watch, err := k.meta.Watch(ctx, at.Prefix)
	if err != nil {
		return fmt.Errorf("watch group: %w", err)
	}
	there, err := watch.Next() // what there is, which the caller reads
	if err != nil {
		return watchError(ctx, err)
	}
	seen := watched{at, map[string]string{}}
	seen.changes(there)
	ready()
	for {
		changes, err := watch.Next()
		if err != nil {
			return watchError(ctx, err)
		}
		if seen.changes(changes) {
			notify(changed)
		}
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

// watched is what a watcher has seen of a group's leases and entries: without what changes
// when a lease is renewed or an entry put once more.
type watched struct {
	location
	values map[string]string
}

// changes takes changes in and reports whether any is to be told.
func (w watched) changes(all []meta.Change) (reported bool) {
	for _, c := range all {
		if strings.HasPrefix(c.Key, w.checkpoints()) {
			continue
		}
		had, known := w.values[c.Key]
		if c.Deleted {
			delete(w.values, c.Key)
			reported = reported || known
			continue
		}
		now := w.essence(c.Entry)
		w.values[c.Key] = now
		reported = reported || !known || had != now
	}
	return reported
}

// essence is what of a record is told when it changes; of one that cannot be read, all.
func (w watched) essence(e meta.Entry) string {
	if strings.HasPrefix(e.Key, w.leases()) {
		if r, err := decode[leaseRecord](e); err == nil {
			return fmt.Sprint(r.Epoch, " ", r.Owner)
		}
	}
	if strings.HasPrefix(e.Key, w.stored()) {
		if r, err := decode[entryRecord](e); err == nil {
			return string(r.Value)
		}
	}
	return string(e.Value)
}

// notify passes it on that something has changed.
func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // it has yet to hear of an earlier one and will read both
	}
}

func anyDeleted(changes []meta.Change) bool {
	return slices.ContainsFunc(changes, func(c meta.Change) bool { return c.Deleted })
}
