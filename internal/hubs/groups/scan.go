package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// GroupEntry is an entry and whose it is: of which hub and group, in their own spelling.
type GroupEntry struct {
	Group processor.Group
	processor.Entry
	// Gone: it was removed. It has neither value nor version then.
	Gone bool
}

// FindEntries reads the entries of all groups of all hubs whose key begins with one of the prefixes. It
// asks for these alone, group by group: leases and checkpoints, which are most of what groups have, are
// not read. What cannot be read, or is of a group that is deleted meanwhile, is left out.
func (k *Registry) FindEntries(ctx context.Context, prefixes ...string) ([]GroupEntry, error) {
	for _, prefix := range prefixes {
		if err := checkEntry(groupentry.CheckPrefix(prefix)); err != nil {
			return nil, err
		}
	}
	var found []GroupEntry
	for _, hub := range k.broker.Hubs() {
		all, err := k.broker.Groups(ctx, hub.Name)
		for i := 0; i < len(all) && err == nil; i++ {
			if found, err = k.findEntries(ctx, found, hub.Name, all[i].Name, prefixes); errors.Is(nobody(err), errNobody) {
				err = nil
			}
		}
		if err != nil && !errors.Is(nobody(err), errNobody) {
			return nil, fmt.Errorf("read entries of all groups: %w", err)
		}
	}
	return found, nil
}

// findEntries adds those of one group.
func (k *Registry) findEntries(ctx context.Context, found []GroupEntry, hub, group string, prefixes []string) ([]GroupEntry, error) {
	r, err := k.broker.GroupRecords(ctx, hub, group)
	if err != nil {
		return found, err
	}
	whose := processor.Group{Namespace: k.broker.Namespace(), Hub: r.Hub.Name, Group: r.Group.Name}
	for _, prefix := range prefixes {
		entries, err := k.meta.List(ctx, r.Prefix+entryPrefix+prefix)
		if err != nil {
			return found, err
		}
		for _, e := range entries {
			f, err := groupEntry(whose, strings.TrimPrefix(e.Key, r.Prefix+entryPrefix), meta.Change{Entry: e})
			if err == nil {
				found = append(found, f)
			} else if err := k.leaveOut(ctx, e.Key, err); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// FollowEntries reports the entries of all groups whose key begins with prefix, all at once, and
// then each that is put or removed, until ctx ends or the watch is lost (meta.ErrWatchLost):
// changes may have been missed then; begin anew.
func (k *Registry) FollowEntries(ctx context.Context, prefix string, notify func([]GroupEntry)) error {
	if err := checkEntry(groupentry.CheckPrefix(prefix)); err != nil {
		return err
	}
	prefixes := []string{prefix}
	watch, err := meta.WatchSome(ctx, k.meta, broker.RecordsPrefix, func(key string) bool {
		_, _, ok := cutEntry(key, prefixes)
		return ok
	})
	if err != nil {
		return fmt.Errorf("watch entries of all groups: %w", err)
	}
	owners := owners{k.broker, nil, map[string]processor.Group{}}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return watchError(ctx, err)
		}
		var stored []GroupEntry
		for _, c := range changes {
			f, err := owners.entry(ctx, c, prefixes)
			if errors.Is(err, errNobody) && !first && !c.Deleted {
				f, err = owners.await(ctx, c, prefix)
			}
			if err == nil {
				stored = append(stored, f)
			} else if err := k.leaveOut(ctx, c.Key, err); err != nil {
				return err
			}
		}
		if first || len(stored) > 0 {
			notify(stored)
		}
	}
}

// Why a record is left out.
var (
	errOther  = errors.New("not one of the entries asked for")
	errNobody = errors.New("no group has these records")
	errBroken = errors.New("not readable")
)

// leaveOut gives the error if it is none of those: a store that does not answer must not look like
// one without entries.
func (k *Registry) leaveOut(ctx context.Context, key string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errBroken):
		k.log.Error("a record of a group cannot be read and is left out", "key", key, "error", err)
		return nil
	case errors.Is(err, errOther), errors.Is(err, errNobody):
		return nil
	}
	return err
}

// owners finds out whose records are under which prefix: a log for each hub, and in it an
// incarnation for each group.
type owners struct {
	broker Broker
	hubs   map[string]string          // by what the prefixes of all its groups have in common
	groups map[string]processor.Group // by prefix
}

// entry reads a record; errOther for one that is no such entry.
func (o *owners) entry(ctx context.Context, c meta.Change, prefixes []string) (GroupEntry, error) {
	at, key, ok := cutEntry(c.Key, prefixes)
	if !ok {
		return GroupEntry{}, errOther
	}
	group, err := o.of(ctx, at)
	if err != nil {
		return GroupEntry{}, err
	}
	return groupEntry(group, key, c)
}

// groupEntry reads an entry of a group; errBroken for one that cannot be read.
func groupEntry(group processor.Group, key string, c meta.Change) (GroupEntry, error) {
	f := GroupEntry{Group: group, Entry: processor.Entry{Key: key}, Gone: c.Deleted}
	if c.Deleted {
		return f, nil
	}
	record, err := decode[entryRecord](c.Entry)
	if err != nil {
		return f, fmt.Errorf("%w: %w", errBroken, err)
	}
	f.Value, f.Version = record.Value, versionOf(c.Revision)
	return f, nil
}

// cutEntry divides the key of a record into its group's prefix and the entry's own key; false for one that
// is no entry whose key begins with one of the prefixes.
func cutEntry(record string, prefixes []string) (group, key string, ok bool) {
	at, key, ok := strings.Cut(record, "/"+entryPrefix)
	ok = ok && strings.Count(at, "/") == 2 &&
		slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	return at + "/", key, ok
}

// of gives the group that has the prefix.
func (o *owners) of(ctx context.Context, prefix string) (processor.Group, error) {
	if g, known := o.groups[prefix]; known {
		return g, nil
	}
	hub, err := o.hub(ctx, prefix)
	if err != nil {
		return processor.Group{}, err
	}
	all, err := o.broker.Groups(ctx, hub)
	if err != nil {
		return processor.Group{}, nobody(err)
	}
	for _, g := range all {
		r, err := o.broker.GroupRecords(ctx, hub, g.Name)
		if err != nil && !errors.Is(nobody(err), errNobody) {
			return processor.Group{}, err
		}
		if err == nil {
			o.groups[r.Prefix] = processor.Group{Namespace: o.broker.Namespace(), Hub: r.Hub.Name, Group: r.Group.Name}
		}
	}
	if g, known := o.groups[prefix]; known {
		return g, nil
	}
	return processor.Group{}, errNobody
}

// nobody says of a hub or group that was deleted meanwhile that there is none.
func nobody(err error) error {
	var missing *broker.NotFoundError
	if errors.As(err, &missing) {
		return errNobody
	}
	return err
}

// hub gives the hub whose log the prefix names. That is known without asking the store.
func (o *owners) hub(ctx context.Context, prefix string) (string, error) {
	log := logOf(prefix)
	if hub, known := o.hubs[log]; known {
		return hub, nil
	}
	o.hubs = make(map[string]string)
	for _, h := range o.broker.Hubs() {
		if r, err := o.broker.GroupRecords(ctx, h.Name, broker.DefaultGroup); err == nil {
			o.hubs[logOf(r.Prefix)] = h.Name
		}
	}
	if hub, known := o.hubs[log]; known {
		return hub, nil
	}
	return "", errNobody
}

// logOf is the part of a prefix that all groups of a hub have in common.
func logOf(prefix string) string { return prefix[:strings.LastIndex(prefix[:len(prefix)-1], "/")+1] }

// How long to wait for the hub of an entry's group: its definition may reach this node a little
// later.
const (
	ownerTries = 8
	ownerPause = 70 * time.Millisecond
)

// await tries until the hub is known, or it seems to be gone.
func (o *owners) await(ctx context.Context, c meta.Change, prefix string) (f GroupEntry, err error) {
	err = errNobody
	for try := 0; try < ownerTries && errors.Is(err, errNobody) && ctx.Err() == nil; try++ {
		sleep.About(ctx, ownerPause<<min(try, 3))
		f, err = o.entry(ctx, c, []string{prefix})
	}
	return f, err
}
