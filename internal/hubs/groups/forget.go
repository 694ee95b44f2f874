package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// ErrNoInstance: no instance of the group has shown itself by that id.
var ErrNoInstance = errors.New("no such instance")

// AliveError refuses to forget an instance that lives.
type AliveError struct {
	Instance string
	Seen     time.Time
}

func (e *AliveError) Error() string {
	return fmt.Sprintf("instance %q is alive: it was seen at %s", e.Instance, e.Seen.Format(time.RFC3339))
}

// Forget removes the presence of an instance that is dead, and nothing else: what it owned stays in its name
// until others take it. One that was seen within AliveWithin is an *AliveError, and so is one that shows itself
// meanwhile. ErrNoInstance where there is none; also for owners that never had a presence.
func (k *Registry) Forget(ctx context.Context, hub, name, instance string) error {
	g, err := k.find(ctx, processor.Group{Hub: hub, Group: name})
	if err != nil {
		return err
	}
	missing := fmt.Errorf("instance %.64q of group %q: %w", instance, g.Group.Name, ErrNoInstance)
	key := presencePrefix + instance
	if groupentry.CheckKey(key) != nil {
		return missing
	}
	there, revision, err := g.entry(ctx, key)
	if err != nil {
		return err
	}
	if there == nil {
		return missing
	}
	if seen := there.Put; !said(there.Value).Ended && now().Sub(seen) < AliveWithin {
		return &AliveError{instance, seen}
	}
	err = k.meta.Delete(ctx, g.Prefix+entryPrefix+key, revision)
	switch {
	case errors.Is(err, meta.ErrConflict):
		return &AliveError{instance, now()}
	case err != nil && !mirror.GoneOrChanged(err):
		return fmt.Errorf("forget instance %q: %w", instance, err)
	}
	k.tally.add(g.Prefix, size{-1, -len(encode(there))})
	k.notes.Note(ctx, activity.Entry{Kind: activity.InstanceForgotten, Object: objectOf(g, "instances", instance)})
	return nil
}
