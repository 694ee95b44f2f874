package handler

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// describeProducers tells which idempotent producers partitions have, and where a transaction of theirs begins that is
// not decided: whoever looks for what holds readers up asks for that. What is named twice is told of once.
//
// DescribeProducers (61), version 0.
func (p admin) describeProducers(ctx context.Context, r *kmsg.DescribeProducersRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeProducersResponse()
	room := allowance(maxGroupAnswerBytes)
	seen := make(map[fetchKey]bool)
	ends := &stableEnds{peer: p.peer}
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
				err = p.activeProducers(ctx, hub, &one, ends, &room)
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
func (p admin) activeProducers(ctx context.Context, hub broker.Hub, to *kmsg.DescribeProducersResponseTopicPartition, ends *stableEnds, room *allowance) error {
	all, err := p.handler.cfg.Broker.Producers(ctx, hub.Name, strconv.Itoa(int(to.Partition)))
	if err != nil {
		return err
	}
	if !room.take(64 * len(all)) {
		return errAskedTooMuch
	}
	begun, err := p.begun(ctx, hub, to.Partition, ends)
	if err != nil {
		return err
	}
	for _, known := range all {
		one := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		one.ProducerID, one.ProducerEpoch, one.LastSequence, one.LastTimestamp = known.ID, int32(known.Epoch), known.Last, known.Used.UnixMilli()
		one.CoordinatorEpoch, one.CurrentTxnStartOffset = nowhere, nowhere
		if first, open := begun[known.ID]; open {
			one.CurrentTxnStartOffset = int64(first)
		}
		to.ActiveProducers = append(to.ActiveProducers, one)
	}
	return nil
}

// begun gives the transactions of a partition that are not decided, by their producers. The coordinator says whether there
// are any, and from where on, so that most partitions are not looked at.
func (p admin) begun(ctx context.Context, hub broker.Hub, number int32, ends *stableEnds) (map[int64]eventlog.Sequence, error) {
	from, open, err := ends.undecided(ctx, hub, number)
	if err != nil || !open {
		return nil, err
	}
	info, err := p.handler.cfg.Broker.Partition(ctx, hub.Name, strconv.Itoa(int(number)))
	if err != nil {
		return nil, err
	}
	return p.handler.cfg.Broker.Begun(ctx, hub.Name, strconv.Itoa(int(number)), max(info.First, from))
}
