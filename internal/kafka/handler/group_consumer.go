package handler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// consumerHeartbeat has a client join a group of KIP-848, be in it, or leave it, and tells it what to consume.
//
// ConsumerGroupHeartbeat (68), versions 0 and 1: from 1 on members name themselves, and subscribe by regular
// expressions as well.
func (p groupMember) consumerHeartbeat(ctx context.Context, r *kmsg.ConsumerGroupHeartbeatRequest) kmsg.Response {
	answer := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	var said consumer.Answer
	h, err := p.consumerSays(r)
	if err == nil {
		err = p.listens()
	}
	if err == nil {
		said, err = p.handler.cfg.Groups.ConsumerHeartbeat(ctx, r.Group, h, p.may(auth.Listen))
	}
	if err != nil {
		answer.ErrorCode, answer.ErrorMessage = p.explain(ctx, "ConsumerGroupHeartbeat", err)
		return answer
	}
	answer.MemberID, answer.MemberEpoch = &said.Member, said.Epoch
	answer.HeartbeatIntervalMillis = int32(groups.ConsumerInterval.Milliseconds())
	if said.Assigns {
		assignment := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
		assignment.Topics = []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{}
		for topic, numbers := range said.Assignment.Topics() {
			one := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			one.TopicID, one.Partitions = topic, numbers
			assignment.Topics = append(assignment.Topics, one)
		}
		answer.Assignment = &assignment
	}
	return answer
}

// consumerSays is what a request says. Of what is too much for any group nothing is made.
func (p groupMember) consumerSays(r *kmsg.ConsumerGroupHeartbeatRequest) (consumer.Heartbeat, error) {
	h := consumer.Heartbeat{
		Member: r.MemberID, Epoch: r.MemberEpoch, Instance: textOf(r.InstanceID), Rack: textOf(r.RackID),
		Client: member.Short(strings.ToValidUTF8(p.client, "\uFFFD")), Host: p.host(),
		RebalanceTimeout: max(time.Duration(r.RebalanceTimeoutMillis)*time.Millisecond, -1),
		Names:            r.SubscribedTopicNames, Expression: r.SubscribedTopicRegex, Assignor: r.ServerAssignor,
		Reported: r.Topics != nil,
	}
	if r.Version == 0 && h.Member == "" && h.Epoch == consumer.EpochJoin {
		h.Member = member.NewID(h.Client)
	}
	n := 0
	for _, t := range r.Topics {
		n += len(t.Partitions)
	}
	if n > consumer.MaxPartitions {
		return h, fmt.Errorf("%w: it owns %d partitions, more than any group has", errInvalid, n)
	}
	owned := make([]consumer.Partition, 0, n)
	for _, t := range r.Topics {
		for _, number := range t.Partitions {
			owned = append(owned, consumer.Partition{Topic: t.TopicID, Number: number})
		}
	}
	h.Owned = consumer.SetOf(owned)
	return h, h.Check()
}

// describeConsumers tells who is in groups of KIP-848, and what they consume. Who has no right to Listen to each
// hub that a group is about hears nothing of it. Groups of the classic protocol are not found here: clients ask
// for these by DescribeGroups then.
//
// ConsumerGroupDescribe (69), versions 0 and 1.
func (p groupAdmin) describeConsumers(ctx context.Context, r *kmsg.ConsumerGroupDescribeRequest) kmsg.Response {
	answer := kmsg.NewPtrConsumerGroupDescribeResponse()
	room := allowance(maxGroupAnswerBytes)
	for _, id := range distinct(r.Groups, maxAskedGroups) {
		one := kmsg.NewConsumerGroupDescribeResponseGroup()
		one.Group = id
		err := p.listens()
		if err == nil {
			err = p.describeConsumer(ctx, &one, r.IncludeAuthorizedOperations, &room)
		}
		if err != nil {
			one.ErrorCode, one.ErrorMessage = p.explain(ctx, "ConsumerGroupDescribe", err)
			one.State, one.Members = stateDead, nil
		}
		answer.Groups = append(answer.Groups, one)
	}
	return answer
}

// describeConsumer fills in one group.
func (p groupAdmin) describeConsumer(ctx context.Context, to *kmsg.ConsumerGroupDescribeResponseGroup, operations bool, room *allowance) error {
	d, err := p.handler.cfg.Groups.Describe(ctx, to.Group)
	if err != nil {
		return err
	}
	if err := p.mayAll(d, auth.Listen); err != nil {
		return err
	}
	g, err := p.handler.cfg.Groups.DescribeConsumer(ctx, to.Group)
	if err != nil {
		return err
	}
	to.State, to.Epoch, to.AssignmentEpoch, to.AssignorName = g.State(), g.Epoch, g.Epoch, g.Assignor()
	if operations {
		to.AuthorizedOperations = p.groupOperations(d)
	}
	names := make(map[consumer.TopicID]string)
	for _, t := range g.Topics() {
		names[t.ID] = t.Name
	}
	assignment := func(s consumer.Set) (a kmsg.Assignment) {
		for topic, numbers := range s.Topics() {
			if names[topic] != "" { // else the hub was deleted, and is about to be given up
				a.TopicPartitions = append(a.TopicPartitions, kmsg.AssignmentTopicPartition{TopicID: topic, Topic: names[topic], Partitions: numbers})
			}
		}
		return a
	}
	for _, m := range g.Members() {
		one := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		one.MemberID, one.InstanceID, one.RackID, one.MemberEpoch = m.ID, textPointer(m.Instance), textPointer(m.Rack), m.Epoch
		one.ClientID, one.ClientHost, one.MemberType = m.Client, m.Host, memberConsumer
		one.SubscribedTopics, one.SubscribedTopicRegex = m.Subscription.Names, textPointer(m.Subscription.Expression)
		one.Assignment, one.TargetAssignment = assignment(m.Assigned), assignment(m.Target)
		size := describedMemberBytes + len(m.Subscription.Expression) + 4*(len(m.Assigned)+len(m.Target))
		for _, name := range m.Subscription.Names {
			size += 2 + len(name)
		}
		if !room.take(size) {
			return groups.ErrBusy
		}
		to.Members = append(to.Members, one)
	}
	return nil
}

// memberConsumer is the type of members of groups of KIP-848; classic ones, which such groups of Kafka's may have as
// well, would be 0.
const memberConsumer = 1

// describedMemberBytes is about what a member takes in an answer, besides what it subscribes to and has.
const describedMemberBytes = 1024
