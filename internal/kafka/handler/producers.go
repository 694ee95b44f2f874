package handler

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// describeProducers tells which idempotent producers partitions have. What is named twice is told of once.
//
// DescribeProducers (61), version 0.
func (p admin) describeProducers(ctx context.Context, r *kmsg.DescribeProducersRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeProducersResponse()
	room := allowance(maxGroupAnswerBytes)
	seen := make(map[fetchKey]bool)
	for _, asked := range r.Topics {
		t := kmsg.NewDescribeProducersResponseTopic()
		t.Topic = asked.Topic
		hub, missing := p.find(ctx, topic{name: asked.Topic}, auth.Listen)
		for _, number := range asked.Partitions {
			key := fetchKey{topic{name: asked.Topic}.folded(), number}
			if seen[key] {
				continue
			}
			seen[key] = true
			one := kmsg.NewDescribeProducersResponseTopicPartition()
			one.Partition = number
			err := missing
			if err == nil {
				err = partition(hub, number)
			}
			if err == nil {
				err = p.activeProducers(ctx, hub.Name, &one, &room)
			}
			if err != nil {
				one.ActiveProducers = nil
				one.ErrorCode, one.ErrorMessage = p.explain(ctx, "DescribeProducers", err)
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}

// activeProducers fills in those of one partition.
func (p admin) activeProducers(ctx context.Context, hub string, to *kmsg.DescribeProducersResponseTopicPartition, room *allowance) error {
	all, err := p.handler.cfg.Broker.Producers(ctx, hub, strconv.Itoa(int(to.Partition)))
	if err != nil {
		return err
	}
	if !room.take(64 * len(all)) {
		return errAskedTooMuch
	}
	for _, known := range all {
		one := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		one.ProducerID, one.ProducerEpoch, one.LastSequence, one.LastTimestamp = known.ID, int32(known.Epoch), known.Last, known.Used.UnixMilli()
		one.CoordinatorEpoch, one.CurrentTxnStartOffset = nowhere, nowhere
		to.ActiveProducers = append(to.ActiveProducers, one)
	}
	return nil
}
