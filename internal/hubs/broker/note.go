package broker

import (
	"cmp"
	"context"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// noteHub notes what this node did to a hub.
func (c Config) noteHub(ctx context.Context, u mirror.Update[definition]) {
	d := activity.Definition{What: "hub", Object: activity.Path("hubs", cmp.Or(u.New.Value.Name, u.Old.Value.Name))}
	d.Before, d.After = u.Stored(encode[definition])
	c.Notes.Define(ctx, d)
}
