package handler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/testkit"
)

// joining is a member's first heartbeat.
func joining(member string, names ...string) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.RebalanceTimeoutMillis, r.SubscribedTopicNames = "g", member, 60_000, append([]string{}, names...)
	r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return r
}

// beating is a later one.
func beating(member string, epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch = "g", member, epoch
	return r
}

func (c *client) consume(r *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
	c.t.Helper()
	return ask[*kmsg.ConsumerGroupHeartbeatResponse](c, 1, r)
}

// assignedOf shows an assignment: "-" where there is none.
func assignedOf(a *kmsg.ConsumerGroupHeartbeatResponse) string {
	if a.Assignment == nil {
		return "-"
	}
	var all []string
	for _, t := range a.Assignment.Topics {
		all = append(all, fmt.Sprint(t.Partitions))
	}
	return strings.Join(all, " ")
}

func TestConsumersAreAssignedPartitions(t *testing.T) { // K2
	y := newYard(t)
	hub := y.hub("orders", 4)
	c := y.client()
	a := c.consume(joining("a", "Orders"))
	testkit.Equal(t, a.ErrorCode, codeNone)
	testkit.Equal(t, *a.MemberID, "a")
	testkit.Equal(t, a.MemberEpoch, int32(1))
	testkit.Equal(t, a.HeartbeatIntervalMillis, int32(5000))
	testkit.Equal(t, assignedOf(a), "[0 1 2 3]")
	testkit.Equal(t, a.Assignment.Topics[0].TopicID, hub.ID)
	testkit.Equal(t, assignedOf(c.consume(beating("a", 1))), "-")

	b := c.consume(joining("b", "orders"))
	testkit.Equal(t, assignedOf(b), "")
	testkit.Equal(t, assignedOf(c.consume(beating("a", 1))), "[0 1]")
	owning := beating("a", 1)
	owning.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: hub.ID, Partitions: []int32{1, 0}}}
	testkit.Equal(t, c.consume(owning).MemberEpoch, int32(2))
	testkit.Equal(t, assignedOf(c.consume(beating("b", 2))), "[2 3]")

	left := c.consume(beating("a", consumer.EpochLeave))
	testkit.Equal(t, left.ErrorCode, codeNone)
	testkit.Equal(t, left.MemberEpoch, consumer.EpochLeave)
	testkit.Equal(t, assignedOf(c.consume(beating("b", 2))), "[0 1 2 3]")
}

func TestConsumersOfVersion0AreNamed(t *testing.T) { // K2
	y := newYard(t)
	y.hub("orders", 1)
	c := y.client()
	a := ask[*kmsg.ConsumerGroupHeartbeatResponse](c, 0, joining("", "orders"))
	testkit.Equal(t, a.ErrorCode, codeNone)
	testkit.That(t, strings.HasPrefix(*a.MemberID, "test-"), "it is named %q", *a.MemberID)
	testkit.Equal(t, ask[*kmsg.ConsumerGroupHeartbeatResponse](c, 0, beating(*a.MemberID, 1)).ErrorCode, codeNone)
	testkit.Equal(t, c.consume(joining("", "orders")).ErrorCode, codeInvalidRequest, "later they name themselves")
}

func TestWhyConsumersAreRefused(t *testing.T) { // K2 K6
	y := newYard(t)
	y.hub("orders", 1)
	c := y.client()
	with := func(r *kmsg.ConsumerGroupHeartbeatRequest, change func(*kmsg.ConsumerGroupHeartbeatRequest)) *kmsg.ConsumerGroupHeartbeatRequest {
		change(r)
		return r
	}
	instance := func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = kmsg.StringPtr("i") }
	testkit.Equal(t, c.consume(with(joining("a", "orders"), instance)).ErrorCode, codeNone)
	for what, one := range map[string]struct {
		r    *kmsg.ConsumerGroupHeartbeatRequest
		code int16
	}{
		"an epoch that it was not told": {beating("a", 7), codeMemberEpoch},
		"a stranger":                    {beating("b", 1), codeUnknownMember},
		"a group that there is not":     {with(beating("a", 1), func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = "h" }), codeUnknownMember},
		"a group without a name":        {with(joining("b", "orders"), func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = "" }), codeGroupID},
		"an instance in use":            {with(joining("b", "orders"), instance), codeInstanceUnreleased},
		"somebody else's instance":      {with(beating("b", 1), instance), codeInstanceFenced},
		"an unknown assignor":           {with(joining("b", "orders"), func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = kmsg.StringPtr("best") }), codeAssignor},
		"no regular expression":         {with(joining("b"), func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = kmsg.StringPtr("(") }), codeExpression},
		"no epoch":                      {beating("a", -5), codeInvalidRequest},
		"more partitions than there may be": {with(beating("a", 1), func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{Partitions: make([]int32, consumer.MaxPartitions+1)}}
		}), codeInvalidRequest},
		"more names than there may be": {joining("b", make([]string, 1001)...), codeInvalidRequest},
	} {
		answer := c.consume(one.r)
		testkit.Equal(t, answer.ErrorCode, one.code, what)
		testkit.That(t, answer.ErrorMessage != nil, "%s: there is no text", what)
	}
}

func TestConsumersCommitWithTheirEpoch(t *testing.T) { // K2
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	c.consume(joining("a", "orders"))
	commit := func(epoch int32) int16 {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.MemberID, r.Generation = "g", "a", epoch
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: hub.Name, TopicID: hub.ID, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 3, LeaderEpoch: -1}}}}
		return ask[*kmsg.OffsetCommitResponse](c, 10, r).Topics[0].Partitions[0].ErrorCode
	}
	fetch := func(member *string, epoch int32) kmsg.OffsetFetchResponseGroup {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberID: member, MemberEpoch: epoch, Topics: []kmsg.OffsetFetchRequestGroupTopic{{TopicID: hub.ID, Partitions: []int32{0}}}}}
		return ask[*kmsg.OffsetFetchResponse](c, 10, r).Groups[0]
	}
	testkit.Equal(t, commit(1), codeNone)
	testkit.Equal(t, commit(2), codeStaleMemberEpoch)
	testkit.Equal(t, fetch(kmsg.StringPtr("a"), 1).Topics[0].Partitions[0].Offset, int64(3))
	testkit.Equal(t, fetch(kmsg.StringPtr("a"), 2).ErrorCode, codeStaleMemberEpoch)
	testkit.Equal(t, fetch(kmsg.StringPtr("b"), 1).ErrorCode, codeUnknownMember)
	testkit.Equal(t, fetch(nil, -1).Topics[0].Partitions[0].Offset, int64(3), "who only looks")
}

// described asks for one group.
func (c *client) described(group string) kmsg.ConsumerGroupDescribeResponseGroup {
	c.t.Helper()
	r := kmsg.NewPtrConsumerGroupDescribeRequest()
	r.Groups, r.IncludeAuthorizedOperations = []string{group, group}, true
	all := ask[*kmsg.ConsumerGroupDescribeResponse](c, 1, r).Groups
	testkit.MustEqual(c.t, len(all), 1, "what is named twice is told of once")
	return all[0]
}

func TestConsumersAreDescribed(t *testing.T) { // K2
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	c.consume(joining("a", "orders"))
	c.consume(joining("b", "orders"))
	g := c.described("g")
	testkit.Equal(t, g.ErrorCode, codeNone)
	testkit.Equal(t, g.State, "Reconciling")
	testkit.Equal(t, g.Epoch, int32(2))
	testkit.Equal(t, g.AssignmentEpoch, int32(2))
	testkit.Equal(t, g.AssignorName, consumer.Uniform)
	testkit.That(t, g.AuthorizedOperations&(1<<opRead) != 0, "it may be read")
	testkit.MustEqual(t, len(g.Members), 2)
	one := g.Members[0]
	testkit.Equal(t, fmt.Sprint(one.MemberID, " ", one.MemberEpoch, " ", one.ClientID, " ", one.MemberType, one.SubscribedTopics), "a 1 test 1 [orders]")
	has, gets := one.Assignment.TopicPartitions[0], g.Members[1].TargetAssignment.TopicPartitions[0]
	testkit.Equal(t, fmt.Sprint(has.Topic, has.Partitions, gets.Topic, gets.Partitions), "orders[0 1]orders[1]")
	testkit.Equal(t, has.TopicID, hub.ID)
	testkit.Equal(t, c.described("h").ErrorCode, codeGroupNotFound)

	list := kmsg.NewPtrListGroupsRequest()
	list.TypesFilter = []string{"consumer"}
	listed := ask[*kmsg.ListGroupsResponse](c, 5, list).Groups
	testkit.MustEqual(t, len(listed), 1)
	testkit.Equal(t, fmt.Sprint(listed[0].Group, " ", listed[0].GroupType, " ", listed[0].ProtocolType, " ", listed[0].GroupState), "g consumer consumer Reconciling")
}

func TestConsumersNeedRights(t *testing.T) { // K5 R1
	y := newClosedYard(t)
	y.hub("orders", 1)
	y.hub("bills", 1)
	y.policy("orders", "sender", auth.Send)
	y.policy("orders", "listener", auth.Listen)
	y.policy("bills", "other", auth.Listen)
	testkit.Equal(t, y.login("sender").consume(joining("s", "orders")).ErrorCode, codeGroupRights)
	testkit.Equal(t, y.login("listener").consume(joining("a", "orders", "bills")).ErrorCode, codeGroupRights)
	testkit.Equal(t, y.login("listener").consume(joining("a", "orders")).ErrorCode, codeNone)
	other := y.login("other")
	testkit.Equal(t, other.consume(joining("b", "bills")).ErrorCode, codeGroupRights, "the group's hubs are others'")
	testkit.Equal(t, other.consume(beating("a", 1)).ErrorCode, codeGroupRights, "under a member's name")
	testkit.Equal(t, other.consume(beating("a", consumer.EpochLeave)).ErrorCode, codeGroupRights, "nor take it out")
	testkit.Equal(t, other.described("g").ErrorCode, codeGroupRights)
	testkit.Equal(t, y.login("listener").described("g").ErrorCode, codeNone)

	everything := joining("c")
	everything.Group, everything.SubscribedTopicRegex = "h", kmsg.StringPtr(".*")
	answer := other.consume(everything)
	testkit.Equal(t, answer.ErrorCode, codeNone)
	testkit.MustEqual(t, len(answer.Assignment.Topics), 1, "hubs that it may read")
	bills := slices.IndexFunc(y.broker.Hubs(), func(h broker.Hub) bool { return h.Name == "bills" })
	testkit.Equal(t, answer.Assignment.Topics[0].TopicID, y.broker.Hubs()[bills].ID)
}
