package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Watch reports changes until ctx ends. It ends with a *broker.NotFoundError when it sees
// records go because the group was deleted: one of the same name that comes after it has other
// records. Saved checkpoints are no change, nor are renewals, or each would wake all instances.
func (k *Registry) Watch(ctx context.Context, of processor.Group, ready func(), changed chan<- struct{}) error {
	g, err := k.find(ctx, of)
	if err != nil {
		return err
	}
	watch, err := k.meta.Watch(ctx, g.Prefix)
	if err != nil {
		return fmt.Errorf("watch group: %w", err)
	}
	seen := watched{}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return watchError(ctx, err)
		}
		news := seen.take(g.Prefix, changes)
		if first { // what there is, which the caller reads
			ready()
			continue
		}
		if news {
			select {
			case changed <- struct{}{}:
			default: // it has yet to hear of an earlier one and will read both
			}
		}
		deleted := slices.ContainsFunc(changes, func(c meta.Change) bool { return c.Deleted })
		if deleted && k.broker.GroupGone(ctx, g.GroupRecords) {
			return g.gone()
		}
	}
}

func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("watch group: %w", err)
}

// watched is what a watcher has seen of leases and entries, by key: without what changes
// when a lease is renewed or an entry put once more.
type watched map[string]string

// take takes in changes of the group whose records have the prefix, and returns whether any is to
// be reported.
func (w watched) take(prefix string, changes []meta.Change) (news bool) {
	for _, c := range changes {
		if strings.HasPrefix(c.Key, prefix+checkpointPrefix) {
			continue
		}
		had, known := w[c.Key]
		if c.Deleted {
			delete(w, c.Key)
			news = news || known
			continue
		}
		now := essence(prefix, c.Entry)
		w[c.Key] = now
		news = news || !known || had != now
	}
	return news
}

// essence is what of a record is reported when it changes; of one that cannot be read, all.
func essence(prefix string, e meta.Entry) string {
	if strings.HasPrefix(e.Key, prefix+leasePrefix) {
		if r, err := decode[leaseRecord](e); err == nil {
			return fmt.Sprint(r.Epoch, " ", r.Owner)
		}
	}
	if strings.HasPrefix(e.Key, prefix+entryPrefix) {
		if r, err := decode[entryRecord](e); err == nil {
			return string(r.Value)
		}
	}
	return string(e.Value)
}
