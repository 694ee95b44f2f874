package box

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// whole gives a poison event with its event, which is read from where it is if the poison event had
// no room for it. What a hub keeps under the same number since another time is another event: the
// hub was made anew.
func (r *redrive) whole(ctx context.Context, l poison.Record) (poison.Record, error) {
	if !l.Reference {
		return l, nil
	}
	gone := fmt.Errorf("%w: it was too large to be put away, and hub %q had it as event %d of partition %s", ErrNotKept, l.Hub, l.Sequence, l.Partition)
	cursor, err := r.box.cfg.Broker.Cursor(ctx, l.Hub, broker.DefaultGroup, l.Partition, eventlog.At(eventlog.Sequence(l.Sequence)))
	if ahead := (*eventlog.PositionError)(nil); errors.As(err, &ahead) {
		return l, gone
	}
	if err != nil {
		return l, err
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	if err != nil {
		return l, err
	}
	if len(run.Events) == 0 || int64(run.First) != l.Sequence || !run.Time.Equal(l.Enqueued) {
		return l, gone
	}
	ev, err := message.Decode(run.Events[0].Message)
	ev.Key = string(run.Events[0].Key)
	l.Event = ev
	return l, err
}
