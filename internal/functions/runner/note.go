package runner

import (
	"context"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// noteFunction notes what this node did to a function.
func (c Config) noteFunction(ctx context.Context, u mirror.Update[*entry]) {
	if c.Notes == nil {
		return
	}
	e := u.New.Value
	if e == nil {
		e = u.Old.Value
	}
	d := activity.Definition{What: "function", Object: activity.Path("functions", e.Name), Leave: []string{"ownRecords"}}
	d.Before, d.After = u.Stored((*entry).encode)
	c.Notes.Define(ctx, d)
}
