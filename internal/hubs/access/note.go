package access

import (
	"cmp"
	"context"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// ObjectOf is a policy as activity names it.
func ObjectOf(hub, policy string) string {
	if hub == "" {
		return activity.Path("policies", policy)
	}
	return activity.Path("hubs", hub, "policies", policy)
}

// notePolicy notes what this node did to a policy.
func (c Config) notePolicy(ctx context.Context, u mirror.Update[record]) {
	d := activity.Definition{What: "policy", Keys: []string{"primary", "secondary"}, Leave: []string{"renewed"}}
	d.Object = ObjectOf(cmp.Or(u.New.Value.Hub, u.Old.Value.Hub), cmp.Or(u.New.Value.Name, u.Old.Value.Name))
	d.Before, d.After = u.Stored(record.encode)
	c.Notes.Define(ctx, d)
}

// noteAccount notes what this node did to the blob account.
func (c Config) noteAccount(ctx context.Context, u mirror.Update[Account]) {
	d := activity.Definition{What: "blob-account", Object: "blob-account", Keys: []string{"primary", "secondary"}, Leave: []string{"renewed"}}
	d.Before, d.After = u.Stored(Account.encode)
	c.Notes.Define(ctx, d)
}
