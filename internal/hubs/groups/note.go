package groups

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// objectOf is the group, or something in it, as activity names it.
func objectOf(g group, in ...string) string {
	return activity.Path(append([]string{"hubs", g.Hub.Name, "groups", g.Group.Name}, in...)...)
}

// noteOwner notes that a partition has another owner; empty: none. A lease that was renewed, or taken again
// by its owner, is no news.
func noteOwner(ctx context.Context, g group, partition, from, to string) {
	if from == to || g.k.notes == nil {
		return
	}
	at := time.Now().UTC()
	g.k.notes.Note(ctx, activity.Entry{
		At: at, Kind: activity.OwnershipMoved, Object: objectOf(g),
		Moves: []activity.Move{{At: at, From: from, To: to, Partitions: []string{partition}}},
	})
}

// notePresence notes that an instance came or went, by its presence before and now; nil: there is none any
// more. One that others have ended was seen no more by them.
func notePresence(ctx context.Context, g group, key string, before meta.Entry, now []byte) {
	instance, ok := strings.CutPrefix(key, presencePrefix)
	if !ok || g.k.notes == nil {
		return
	}
	var was, is presenceSaid
	lived := false
	if len(before.Value) > 0 {
		if r, err := decode[entryRecord](before); err == nil {
			was = said(r.Value)
			lived = !was.Ended
		}
	}
	lives := now != nil
	if lives {
		is = said(now)
		lives = !is.Ended
	}
	e := activity.Entry{Object: objectOf(g, "instances", instance)}
	switch {
	case lives && (!lived || was.Life != is.Life):
		e.Kind = activity.InstanceCame
	case lived && !lives && now == nil:
		e.Kind, e.Detail = activity.InstanceWent, "it left"
	case lived && !lives:
		e.Kind, e.Detail = activity.InstanceWent, "it was seen no more, and others take its partitions"
	default:
		return
	}
	g.k.notes.Note(ctx, e)
}

// noteMoved notes that an operator has moved checkpoints.
func noteMoved(ctx context.Context, g group, moved []Moved) {
	if len(moved) == 0 {
		return
	}
	e := activity.Entry{Kind: activity.CheckpointMoved, Object: objectOf(g), Count: len(moved), Detail: fmt.Sprintf("%d partitions", len(moved))}
	if len(moved) == 1 {
		from := "nothing"
		if moved[0].From != nil {
			from = moved[0].From.Offset
		}
		e.Detail = fmt.Sprintf("partition %s from %s to %s", moved[0].To.Partition, from, moved[0].To.Offset)
	}
	g.k.notes.Note(ctx, e)
}

func ownedBy(owner string) string {
	if owner == "" {
		return "nobody owned it"
	}
	return "it was owned by " + owner
}
