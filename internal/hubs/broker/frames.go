package broker

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Frames is what a broker offers to those who send and read frames, which are batches in a form of their
// own. All methods may be called by many goroutines at once.
type Frames struct{ broker *Broker }

// RawCursor opens a reader of a partition that gives batches of every form as they are stored, for who
// sends frames on as they came. Errors as for Cursor.
func (f *Frames) RawCursor(ctx context.Context, hub, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	h, number, err := f.broker.locate(ctx, hub, partition)
	if err != nil {
		return nil, err
	}
	cursor, err := h.partitions[number].Cursor(ctx, at)
	if err != nil {
		return nil, f.broker.gone(h, fmt.Errorf("read %s/%s: %w", h.Name, partition, err))
	}
	return cursor, nil
}
