package handler

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
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
		for _, part := range asked.Partitions {
			one := kmsg.NewDeleteRecordsResponseTopicPartition()
			one.Partition, one.LowWatermark = part.Partition, nowhere
			err := missing
			if err == nil {
				err = partition(hub, part.Partition)
			}
			if err == nil && times[fetchKey{topic{name: asked.Topic}.folded(), part.Partition}] > 1 {
				err = fmt.Errorf("%w: it names partition %d of %.64q more than once", errInvalid, part.Partition, asked.Topic)
			}
			if err == nil {
				// Each by itself: one that is refused is no reason to keep the others.
				var starts map[int]eventlog.Sequence
				number := int(part.Partition)
				starts, err = p.handler.cfg.Broker.DeleteBefore(ctx, hub.Name, map[int]eventlog.Sequence{number: eventlog.Sequence(part.Offset)})
				one.LowWatermark = int64(starts[number])
			}
			if err != nil {
				one.ErrorCode, one.LowWatermark = p.fail(ctx, "DeleteRecords", err), nowhere
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}
