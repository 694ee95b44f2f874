package handler

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// metadata says which hubs and nodes there are, and which node to turn to for each partition. Where no
// hub is named it is about all that the client has a right to.
//
// Metadata (3), versions 0 to 13; from 10 on by id as well.
func (p *peer) metadata(ctx context.Context, r *kmsg.MetadataRequest) kmsg.Response {
	answer := kmsg.NewPtrMetadataResponse()
	nodes := p.nodes()
	for _, n := range nodes {
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = n.ID, n.Host, n.Port, rackOf(n)
		answer.Brokers = append(answer.Brokers, b)
	}
	answer.ControllerID = nodes[0].ID
	answer.ClusterID = kmsg.StringPtr(p.handler.cfg.Broker.Namespace())
	answer.AuthorizedOperations = notAsked
	if r.IncludeClusterAuthorizedOperations {
		answer.AuthorizedOperations = p.rights().clusterOperations()
	}
	answer.Topics = []kmsg.MetadataResponseTopic{}
	if all := r.Topics == nil || r.Version == 0 && len(r.Topics) == 0; all {
		for _, hub := range p.visible() {
			answer.Topics = append(answer.Topics, p.topicMetadata(topic{name: hub.Name}, hub, nodes, r))
		}
	}
	seen := make(map[topic]bool, len(r.Topics)) // what is named twice is told of once
	for _, asked := range r.Topics {
		t := topicOf(asked.Topic, asked.TopicID)
		if seen[t.folded()] {
			continue
		}
		seen[t.folded()] = true
		hub, err := p.findOrMake(ctx, t, r)
		if err == nil {
			answer.Topics = append(answer.Topics, p.topicMetadata(t, hub, nodes, r))
			continue
		}
		missing := kmsg.NewMetadataResponseTopic()
		missing.Topic, missing.TopicID, missing.AuthorizedOperations = asked.Topic, asked.TopicID, notAsked
		if missing.Topic == nil && r.Version < 12 { // only newer clients may be given none
			missing.Topic = kmsg.StringPtr("")
		}
		missing.ErrorCode = p.fail(ctx, "Metadata", err)
		answer.Topics = append(answer.Topics, missing)
	}
	return answer
}

// topicOf is what a client names that gives a name or, without one, an id.
func topicOf(name *string, id [16]byte) topic {
	if name != nil {
		return topic{name: *name}
	}
	return topic{id: id, byID: true}
}

// visible are the hubs that there is any right to, by name.
func (p *peer) visible() []broker.Hub {
	r := p.rights()
	return slices.DeleteFunc(p.handler.cfg.Broker.Hubs(), func(h broker.Hub) bool { return !r.allow(h.Name, anyRight) })
}

// findOrMake finds a hub that a client asks about. One that is missing is made if the client wants that: where everything is
// open, or the operator allows it and the client manages the namespace.
func (p *peer) findOrMake(ctx context.Context, t topic, r *kmsg.MetadataRequest) (broker.Hub, error) {
	hub, err := p.find(ctx, t, anyRight)
	_, missing := errors.AsType[*broker.NotFoundError](err)
	if !missing || t.byID || !p.mayMake() || r.Version >= 4 && !r.AllowAutoTopicCreation {
		return hub, err
	}
	hub, err = p.handler.cfg.Broker.CreateHub(ctx, broker.HubConfig{Name: t.name})
	if errors.Is(err, broker.ErrHubExists) { // by somebody else, meanwhile
		return p.handler.cfg.Broker.LookUp(ctx, t.name)
	}
	return hub, err
}

func (p *peer) mayMake() bool {
	r := p.rights()
	return r.open || p.handler.cfg.AutoCreate && r.everywhere(auth.Manage)
}

func (p *peer) topicMetadata(asked topic, hub broker.Hub, nodes []Node, r *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	name := cmp.Or(asked.name, hub.Name) // as it was asked for: names are found in any case
	t.Topic, t.TopicID, t.AuthorizedOperations = &name, hub.ID, notAsked
	if r.IncludeTopicAuthorizedOperations {
		t.AuthorizedOperations = p.rights().operations(hub.Name)
	}
	for i := range hub.Partitions {
		one := kmsg.NewMetadataResponseTopicPartition()
		one.Partition, one.Leader, one.LeaderEpoch = int32(i), leader(nodes, hub, i).ID, leaderEpoch
		one.Replicas, one.ISR, one.OfflineReplicas = []int32{one.Leader}, []int32{one.Leader}, []int32{}
		t.Partitions = append(t.Partitions, one)
	}
	return t
}

// leaderEpoch is that of every partition, for ever: whatever was acknowledged is never taken back, so
// that no reader has to find out where its past and the partition's part.
const leaderEpoch = 0

// maxDescribed is how many partitions an answer describes at most; clients ask for the rest.
const maxDescribed = 2000

// describePartitions is metadata in pages, by name.
//
// DescribeTopicPartitions (75), version 0.
func (p *peer) describePartitions(ctx context.Context, r *kmsg.DescribeTopicPartitionsRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeTopicPartitionsResponse()
	names, nodes := p.described(r), p.nodes()
	left := maxDescribed
	if r.ResponsePartitionLimit > 0 {
		left = min(left, int(r.ResponsePartitionLimit))
	}
	for _, name := range names {
		from := 0
		if r.Cursor != nil && r.Cursor.Topic == name {
			from = max(int(r.Cursor.Partition), 0)
		}
		if left == 0 {
			answer.NextCursor = nextCursor(name, from)
			break
		}
		t := kmsg.NewDescribeTopicPartitionsResponseTopic()
		t.Topic, t.AuthorizedOperations = kmsg.StringPtr(name), notAsked
		hub, err := p.find(ctx, topic{name: name}, anyRight)
		if err != nil {
			t.ErrorCode = p.fail(ctx, "DescribeTopicPartitions", err)
			answer.Topics = append(answer.Topics, t)
			continue
		}
		t.TopicID, t.AuthorizedOperations = hub.ID, p.rights().operations(hub.Name)
		to := min(hub.Partitions, from+left)
		for i := from; i < to; i++ {
			t.Partitions = append(t.Partitions, describedPartition(leader(nodes, hub, i).ID, i))
		}
		answer.Topics = append(answer.Topics, t)
		if left -= max(to-from, 0); to < hub.Partitions {
			answer.NextCursor = nextCursor(name, to)
			break
		}
	}
	return answer
}

// described are the names of the hubs that a client wants described, in order, from its cursor on.
func (p *peer) described(r *kmsg.DescribeTopicPartitionsRequest) (names []string) {
	for _, t := range r.Topics {
		names = append(names, t.Topic)
	}
	if len(r.Topics) == 0 {
		for _, hub := range p.visible() {
			names = append(names, hub.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if r.Cursor != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return name < r.Cursor.Topic })
	}
	return names
}

func describedPartition(leader int32, number int) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	one := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	one.Partition, one.LeaderID, one.LeaderEpoch = int32(number), leader, leaderEpoch
	one.Replicas, one.ISR, one.OfflineReplicas = []int32{leader}, []int32{leader}, []int32{}
	one.EligibleLeaderReplicas, one.LastKnownELR = []int32{}, []int32{} // Java's admin client fails on null
	return one
}

func nextCursor(name string, partition int) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	next.Topic, next.Partition = name, int32(partition)
	return &next
}
