package handler

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// logDir is the name of the one place in which everything is. Where it really is concerns operators only.
const logDir = "eventyard"

// describeLogDirs says how much storage partitions take: those of hubs that there is any right to. What is
// not there, or not to be seen, is left out, as Kafka does.
//
// DescribeLogDirs (35), versions 1 to 5. How much room there is in all is not said.
func (p *peer) describeLogDirs(ctx context.Context, r *kmsg.DescribeLogDirsRequest) kmsg.Response {
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir, dir.Topics = logDir, []kmsg.DescribeLogDirsResponseDirTopic{}
	add := func(name string, hub broker.Hub, partitions []int32) {
		t := kmsg.NewDescribeLogDirsResponseDirTopic()
		t.Topic = name
		for _, number := range partitions {
			if info, err := p.handler.cfg.Broker.Partition(ctx, hub.Name, strconv.Itoa(int(number))); err == nil {
				one := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
				one.Partition, one.Size = number, info.Bytes
				t.Partitions = append(t.Partitions, one)
			} else if _, missing := errors.AsType[*broker.NotFoundError](err); !missing && dir.ErrorCode == codeNone {
				dir.ErrorCode = p.fail(ctx, "DescribeLogDirs", err)
			}
		}
		dir.Topics = append(dir.Topics, t)
	}
	if r.Topics == nil {
		for _, hub := range p.visible() {
			add(hub.Name, hub, numbersOf(hub))
		}
	}
	seen := make(map[fetchKey]bool) // what is named twice is told of once
	for _, asked := range r.Topics {
		var fresh []int32
		for _, number := range asked.Partitions {
			if key := (fetchKey{topic{name: asked.Topic}.folded(), number}); !seen[key] {
				seen[key] = true
				fresh = append(fresh, number)
			}
		}
		if hub, err := p.find(ctx, topic{name: asked.Topic}, anyRight); err == nil && len(fresh) > 0 {
			add(asked.Topic, hub, fresh)
		}
	}
	answer := kmsg.NewPtrDescribeLogDirsResponse()
	answer.Dirs = append(answer.Dirs, dir)
	return answer
}

// numbersOf are those of all partitions of a hub.
func numbersOf(hub broker.Hub) []int32 {
	all := make([]int32, hub.Partitions)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// listReassignments says that no partition is on its way to another node: none ever is.
//
// ListPartitionReassignments (46), version 0.
func (p *peer) listReassignments() kmsg.Response {
	return kmsg.NewPtrListPartitionReassignmentsResponse()
}
