package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/processor"
)

// saved is the outcome of a checkpoint's write.
type saved struct {
	held    bool
	updated *time.Time // nil: nothing was written
	version *string
}

func scanSaved(row pgx.CollectableRow) (saved, error) {
	var s saved
	err := row.Scan(&s.held, &s.updated, &s.version)
	return s, err
}

// apply gives the checkpoint as it was written.
func (s saved) apply(c processor.Checkpoint) (processor.Checkpoint, error) {
	switch {
	case !s.held:
		return c, processor.ErrFenced
	case s.version == nil:
		return c, processor.ErrConflict
	}
	c.Updated, c.Version = s.updated.UTC(), processor.Version(*s.version)
	return c, nil
}
