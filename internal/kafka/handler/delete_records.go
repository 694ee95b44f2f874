package handler

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// deleteRecords deletes the events of partitions before an offset each; -1 means all that there are. A partition that is
// named more than once is refused.
//
// DeleteRecords (21), versions 0 to 2.
func (p admin) deleteRecords(ctx context.Context, r *kmsg.DeleteRecordsRequest) kmsg.Response {
	answer := kmsg.NewPtrDeleteRecordsResponse()
	times := make(map[fetchKey]int)
	for _, asked := range r.Topics {
		for _, part := range asked.Partitions {
			times[fetchKey{topic{name: asked.Topic}.folded(), part.Partition}]++
		}
	}
	for _, asked := range r.Topics {
		t := kmsg.NewDeleteRecordsResponseTopic()
		t.Topic = asked.Topic
		hub, missing := p.find(ctx, topic{name: asked.Topic}, auth.Manage)
		below := make(map[int]eventlog.Sequence)
		errs := make([]error, len(asked.Partitions))
		for i, part := range asked.Partitions {
			err := missing
			if err == nil {
				err = partition(hub, part.Partition)
			}
			if err == nil && times[fetchKey{topic{name: asked.Topic}.folded(), part.Partition}] > 1 {
				err = fmt.Errorf("%w: it names partition %d of %.64q more than once", errInvalid, part.Partition, asked.Topic)
			}
			if err == nil { // one that is refused is no reason to keep the others
				err = p.canDelete(ctx, hub.Name, part)
			}
			if errs[i] = err; err == nil {
				below[int(part.Partition)] = eventlog.Sequence(part.Offset)
			}
		}
		var starts map[int]eventlog.Sequence
		var failed error
		if len(below) > 0 { // all together: each time the whole hub is stored
			starts, failed = p.handler.cfg.Broker.DeleteBefore(ctx, hub.Name, below)
		}
		for i, part := range asked.Partitions {
			one := kmsg.NewDeleteRecordsResponseTopicPartition()
			one.Partition, one.LowWatermark = part.Partition, nowhere
			if err := cmp.Or(errs[i], failed); err != nil {
				one.ErrorCode = p.fail(ctx, "DeleteRecords", err)
			} else {
				one.LowWatermark = int64(starts[int(part.Partition)])
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}

// canDelete refuses an offset that a partition does not have.
func (p admin) canDelete(ctx context.Context, hub string, part kmsg.DeleteRecordsRequestTopicPartition) error {
	at := eventlog.Sequence(part.Offset)
	if at == broker.EndOfPartition {
		return nil
	}
	_, next, err := p.handler.cfg.Broker.Span(ctx, hub, strconv.Itoa(int(part.Partition)))
	if err == nil && (at < 0 || at > next) {
		err = &eventlog.PositionError{Asked: at, Last: next - 1}
	}
	return err
}
