package handler

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/testkit"
)

// joinRequest is that of a consumer that subscribes to hubs.
func joinRequest(group, member string, hubs ...string) *kmsg.JoinGroupRequest {
	wants, r := kmsg.NewConsumerMemberMetadata(), kmsg.NewPtrJoinGroupRequest()
	wants.Topics = hubs
	r.Group, r.MemberID, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis, r.ProtocolType = group, member, 10_000, 60_000, "consumer"
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: wants.AppendTo(nil)}}
	return r
}

// join has a client be in a group, in as many steps as the version has.
func (c *client) join(version int16, group string, hubs ...string) *kmsg.JoinGroupResponse {
	c.t.Helper()
	joined := ask[*kmsg.JoinGroupResponse](c, version, joinRequest(group, "", hubs...))
	if version >= 4 {
		testkit.MustEqual(c.t, joined.ErrorCode, codeMemberIDRequired, "code of the first step")
		joined = ask[*kmsg.JoinGroupResponse](c, version, joinRequest(group, joined.MemberID, hubs...))
	}
	testkit.MustEqual(c.t, joined.ErrorCode, codeNone, "code")
	return joined
}

// sync asks for an assignment; the leader assigns everything to the member named.
func (c *client) sync(version int16, group string, joined *kmsg.JoinGroupResponse, to string) *kmsg.SyncGroupResponse {
	c.t.Helper()
	r := kmsg.NewPtrSyncGroupRequest()
	r.Group, r.Generation, r.MemberID, r.ProtocolType, r.Protocol = group, joined.Generation, joined.MemberID, joined.ProtocolType, joined.Protocol
	if joined.LeaderID == joined.MemberID {
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: to, MemberAssignment: []byte("everything")}}
	}
	return ask[*kmsg.SyncGroupResponse](c, version, r)
}

func (c *client) beat(version int16, group string, joined *kmsg.JoinGroupResponse) int16 {
	c.t.Helper()
	r := kmsg.NewPtrHeartbeatRequest()
	r.Group, r.Generation, r.MemberID = group, joined.Generation, joined.MemberID
	return ask[*kmsg.HeartbeatResponse](c, version, r).ErrorCode
}

// commitRequest commits one offset, without being in the group.
func commitRequest(hub broker.Hub, group string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	r, part := kmsg.NewPtrOffsetCommitRequest(), kmsg.NewOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset, part.Metadata = partition, offset, new("a note")
	r.Group, r.Generation = group, -1
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: hub.Name, TopicID: hub.ID, Partitions: []kmsg.OffsetCommitRequestTopicPartition{part}}}
	return r
}

func (c *client) commit(version int16, hub broker.Hub, group string, partition int32, offset int64) int16 {
	c.t.Helper()
	return ask[*kmsg.OffsetCommitResponse](c, version, commitRequest(hub, group, partition, offset)).Topics[0].Partitions[0].ErrorCode
}

// committed asks for one offset.
func (c *client) committed(version int16, hub broker.Hub, group string, partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	c.t.Helper()
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Group, r.Topics = group, []kmsg.OffsetFetchRequestTopic{{Topic: hub.Name, Partitions: []int32{partition}}}
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group, asked.Topics = group, []kmsg.OffsetFetchRequestGroupTopic{{Topic: hub.Name, TopicID: hub.ID, Partitions: []int32{partition}}}
	r.Groups = []kmsg.OffsetFetchRequestGroup{asked}
	answer := ask[*kmsg.OffsetFetchResponse](c, version, r)
	if version < 8 {
		testkit.MustEqual(c.t, answer.ErrorCode, codeNone, "code of the whole")
		return kmsg.OffsetFetchResponseGroupTopicPartition(answer.Topics[0].Partitions[0])
	}
	testkit.MustEqual(c.t, answer.Groups[0].ErrorCode, codeNone, "code of the group")
	return answer.Groups[0].Topics[0].Partitions[0]
}

// K2: two members share a group, in every version of the requests: one waits for the other, the leader assigns, one
// leaves, and the other hears of it.
func TestMembersOfAGroup(t *testing.T) {
	for version := range int16(10) {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.hub("orders", 2)
				a, b := y.client(), y.client()
				group := fmt.Sprint("g", version)
				first := a.join(version, group, "orders")
				testkit.Equal(t, first.LeaderID, first.MemberID, "leader")
				testkit.Equal(t, string(a.sync(min(version, 5), group, first, first.MemberID).MemberAssignment), "everything")
				testkit.Equal(t, a.beat(min(version, 4), group, first), codeNone, "code of a heartbeat")

				second := make(chan *kmsg.JoinGroupResponse, 1)
				go func() { second <- b.join(version, group, "orders") }()
				synctest.Wait()
				testkit.Equal(t, a.beat(min(version, 4), group, first), codeRebalancing, "code of a heartbeat")
				again := ask[*kmsg.JoinGroupResponse](a, version, joinRequest(group, first.MemberID, "orders"))
				other := <-second
				testkit.Equal(t, len(again.Members), 2, "members")
				testkit.Equal(t, other.Generation, first.Generation+1, "generation")
				synced := make(chan string, 1)
				go func() { synced <- string(b.sync(min(version, 5), group, other, "").MemberAssignment) }()
				synctest.Wait()
				testkit.Equal(t, string(a.sync(min(version, 5), group, again, other.MemberID).MemberAssignment), "", "what the leader has")
				testkit.Equal(t, <-synced, "everything", "what the other has")

				leave := kmsg.NewPtrLeaveGroupRequest()
				leave.Group, leave.MemberID, leave.Members = group, first.MemberID, []kmsg.LeaveGroupRequestMember{{MemberID: first.MemberID}}
				left := ask[*kmsg.LeaveGroupResponse](a, min(version, 5), leave)
				testkit.Equal(t, left.ErrorCode, codeNone, "code of leaving")
				testkit.Equal(t, len(left.Members), map[bool]int{true: 1}[version >= 3], "members that have left")
				testkit.Equal(t, b.beat(min(version, 4), group, other), codeRebalancing, "code of a heartbeat")
				testkit.Equal(t, a.beat(min(version, 4), group, again), codeUnknownMember, "code of who has left")
			})
		})
	}
}

// K2: a join that waits ends when the yard stops, and when its connection does.
func TestJoinsThatWaitEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		a, b := y.client(), y.client()
		joined := a.join(9, "g", "orders")
		a.sync(5, "g", joined, joined.MemberID)
		waiting := joinRequest("g", "", "orders")
		b.send(3, waiting)
		synctest.Wait()
		testkit.Equal(t, len(testkit.Value(y.groups.Describe(t.Context(), "g"))(t).Members), 2, "members")
		testkit.Must(t, b.conn.Close())
		synctest.Wait()
		testkit.Equal(t, len(testkit.Value(y.groups.Describe(t.Context(), "g"))(t).Members), 1, "members after it has gone")
		c := y.client()
		c.send(3, waiting)
		synctest.Wait()
		began := time.Now()
		y.stop()
		testkit.That(t, time.Since(began) < time.Second, "it took %v to stop", time.Since(began))
		answer, err := c.tryReceive(waiting)
		testkit.Must(t, err)
		testkit.Equal(t, answer.(*kmsg.JoinGroupResponse).ErrorCode, codeNoCoordinator, "code of who waits when the yard stops")
	})
}

// K2: offsets are stored and read in every version, with what was said beside them.
func TestOffsetsOfAGroup(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	for version := int16(2); version <= 10; version++ {
		testkit.Equal(t, c.commit(version, hub, "g", 1, 100+int64(version)), codeNone, "code in version %d", version)
		for reading := int16(1); reading <= 10; reading++ {
			got := c.committed(reading, hub, "g", 1)
			testkit.Equal(t, got.Offset, 100+int64(version), "offset of version %d in version %d", version, reading)
			testkit.Equal(t, *got.Metadata, "a note", "metadata")
			testkit.Equal(t, c.committed(reading, hub, "g", 0).Offset, int64(nowhere), "an offset that was not committed")
			testkit.Equal(t, c.committed(reading, hub, "nobody", 0).Offset, int64(nowhere), "an offset of a group that there is not")
		}
	}
	testkit.Equal(t, c.commit(9, hub, "g", 2, 1), codeUnknownTopic, "code of a partition that is not there")
	testkit.Equal(t, c.commit(9, broker.Hub{Name: "nobody"}, "g", 0, 1), codeUnknownTopic, "code of a hub that is not there")
	testkit.Equal(t, c.commit(10, broker.Hub{ID: [16]byte{1}}, "g", 0, 1), codeUnknownID, "code of an id that is not there")
	testkit.Equal(t, c.commit(9, hub, "", 0, 1), codeGroupID, "code of a group without a name")
	late := commitRequest(hub, "g", 0, 1)
	late.Generation, late.MemberID = 7, "nobody"
	testkit.Equal(t, ask[*kmsg.OffsetCommitResponse](c, 9, late).Topics[0].Partitions[0].ErrorCode, codeUnknownMember, "code of who is not in it")
	long := commitRequest(hub, "g", 0, 1)
	long.Topics[0].Partitions[0].Metadata = new(strings.Repeat("x", 2000))
	testkit.Equal(t, ask[*kmsg.OffsetCommitResponse](c, 9, long).Topics[0].Partitions[0].ErrorCode, codeMetadata, "code of a long note")
}

// K5: all offsets of a group are told as far as there is a right to their hubs.
func TestAllOffsetsOfAGroup(t *testing.T) {
	y := newClosedYard(t)
	orders, bills := y.hub("orders", 2), y.hub("bills", 1)
	y.policy("orders", "listens", auth.Listen)
	root, own := y.login(auth.RootPolicy), y.login("listens")
	for _, hub := range []broker.Hub{orders, bills} {
		testkit.MustEqual(t, root.commit(10, hub, "g", 0, 5), codeNone)
	}
	for _, version := range []int16{5, 8, 10} {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Group, r.Topics = "g", nil
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g"}, {Group: "g"}, {Group: "nobody"}}
		for c, want := range map[*client]int{root: 2, own: 1} {
			answer := ask[*kmsg.OffsetFetchResponse](c, version, r)
			if version < 8 {
				testkit.Equal(t, len(answer.Topics), want, "hubs")
				continue
			}
			testkit.MustEqual(t, len(answer.Groups), 2, "groups, of which one was named twice")
			testkit.Equal(t, len(answer.Groups[0].Topics), want, "hubs")
			testkit.Equal(t, len(answer.Groups[1].Topics), 0, "hubs of a group that there is not")
		}
	}
}

// K6: an answer about groups is bounded, however often something is asked for.
func TestAnswersAboutGroupsAreBounded(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	note := commitRequest(hub, "g", 0, 1)
	note.Topics[0].Partitions[0].Metadata = new(strings.Repeat("x", 1024))
	testkit.MustEqual(t, ask[*kmsg.OffsetCommitResponse](c, 9, note).Topics[0].Partitions[0].ErrorCode, codeNone)
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "orders", Partitions: make([]int32, 500_000)}}}}
	answer := ask[*kmsg.OffsetFetchResponse](c, 8, r)
	testkit.Equal(t, answer.Groups[0].ErrorCode, codeInvalidRequest, "code")
	testkit.Equal(t, len(answer.Groups[0].Topics), 0, "topics")
	describe := kmsg.NewPtrDescribeGroupsRequest()
	for range 100_000 {
		describe.Groups = append(describe.Groups, "g")
	}
	testkit.Equal(t, len(ask[*kmsg.DescribeGroupsResponse](c, 6, describe).Groups), 1, "groups that are described")
}

// K6: a request is about so many groups, and says nothing of more; which nodes there are is looked up once for all.
func TestRequestsAreAboutSoManyGroups(t *testing.T) {
	looked := 0
	y := newYard(t, func(_ *yard, cfg *Config) {
		cfg.Nodes = func(*kafka.Conn) []Node {
			looked++
			return []Node{{ID: 1, Host: "a"}, {ID: 2, Host: "b"}}
		}
	})
	y.hub("orders", 1)
	c := y.client()
	names := make([]string, maxFoundGroups+1)
	for i := range names {
		names[i] = fmt.Sprint("g", i)
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = append(names, names...)
	found := ask[*kmsg.FindCoordinatorResponse](c, 6, find).Coordinators
	testkit.MustEqual(t, len(found), maxFoundGroups, "groups whose nodes are told")
	testkit.Equal(t, found[maxFoundGroups-1].Key, names[maxFoundGroups-1], "the last of them")
	testkit.Equal(t, looked, 1, "how often nodes were looked up")

	describe, describeConsumers, remove := kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrConsumerGroupDescribeRequest(), kmsg.NewPtrDeleteGroupsRequest()
	describe.Groups, describeConsumers.Groups, remove.Groups = names, names, names
	testkit.Equal(t, len(ask[*kmsg.DescribeGroupsResponse](c, 6, describe).Groups), maxAskedGroups, "groups that are described")
	testkit.Equal(t, len(ask[*kmsg.ConsumerGroupDescribeResponse](c, 1, describeConsumers).Groups), maxAskedGroups, "groups of KIP-848 that are")
	testkit.Equal(t, len(ask[*kmsg.DeleteGroupsResponse](c, 2, remove).Groups), maxAskedGroups, "groups that are deleted")
}

// K2: groups are listed, described and deleted, in every version.
func TestLookingAtGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		hub := y.hub("orders", 1)
		c, operator := y.client(), y.client()
		joined := c.join(9, "busy", "orders")
		c.sync(5, "busy", joined, joined.MemberID)
		testkit.MustEqual(t, operator.commit(9, hub, "idle", 0, 3), codeNone)
		for version := range int16(6) {
			listed := ask[*kmsg.ListGroupsResponse](operator, version, kmsg.NewPtrListGroupsRequest()).Groups
			testkit.MustEqual(t, len(listed), 2, "groups")
			testkit.Equal(t, listed[0].Group+" "+listed[0].ProtocolType, "busy consumer", "the first one")
			testkit.Equal(t, listed[1].Group+" "+listed[1].ProtocolType, "idle ", "the second one")
		}
		for _, filter := range []struct {
			states, types []string
			groups        int
		}{{[]string{"stable"}, nil, 1}, {[]string{"Stable", "Empty"}, []string{"Classic"}, 2}, {nil, []string{"consumer"}, 0}} {
			r := kmsg.NewPtrListGroupsRequest()
			r.StatesFilter, r.TypesFilter = filter.states, filter.types
			testkit.Equal(t, len(ask[*kmsg.ListGroupsResponse](operator, 5, r).Groups), filter.groups, "groups for %v", filter)
		}
		for version := range int16(7) {
			r := kmsg.NewPtrDescribeGroupsRequest()
			r.Groups, r.IncludeAuthorizedOperations = []string{"busy", "idle", "nobody"}, true
			all := ask[*kmsg.DescribeGroupsResponse](operator, version, r).Groups
			testkit.Equal(t, fmt.Sprint(all[0].State, " ", all[0].Protocol, " ", len(all[0].Members)), "Stable range 1", "the first one")
			testkit.Equal(t, string(all[0].Members[0].MemberAssignment)+" "+all[0].Members[0].ClientID, "everything test", "its member")
			testkit.Equal(t, all[1].State, "Empty", "the second one")
			testkit.Equal(t, all[2].State, "Dead", "one that there is not")
			testkit.Equal(t, all[2].ErrorCode, map[bool]int16{true: codeGroupNotFound}[version >= 6], "its code")
		}
		gone := kmsg.NewPtrOffsetDeleteRequest()
		gone.Group, gone.Topics = "busy", []kmsg.OffsetDeleteRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
		testkit.Equal(t, ask[*kmsg.OffsetDeleteResponse](operator, 0, gone).Topics[0].Partitions[0].ErrorCode, codeGroupSubscribed, "code")
		gone.Group = "nobody"
		testkit.Equal(t, ask[*kmsg.OffsetDeleteResponse](operator, 0, gone).ErrorCode, codeGroupNotFound, "code")
		gone.Group = "idle"
		testkit.Equal(t, ask[*kmsg.OffsetDeleteResponse](operator, 0, gone).Topics[0].Partitions[0].ErrorCode, codeNone, "code")
		testkit.Equal(t, operator.committed(8, hub, "idle", 0).Offset, int64(nowhere), "an offset that was deleted")
		r := kmsg.NewPtrDeleteGroupsRequest()
		r.Groups = []string{"busy", "idle", "nobody"}
		deleted := ask[*kmsg.DeleteGroupsResponse](operator, 2, r).Groups
		for i, code := range []int16{codeGroupNotEmpty, codeNone, codeGroupNotFound} {
			testkit.Equal(t, deleted[i].ErrorCode, code, "code of %s", r.Groups[i])
		}
	})
}

// K5: a stranger with a right to another hub can neither be in a group nor disturb it.
func TestStrangersDisturbNoGroup(t *testing.T) {
	y := newClosedYard(t)
	y.hub("orders", 1)
	y.hub("others", 1)
	y.policy("orders", "listens", auth.Listen)
	y.policy("others", "stranger", auth.Manage)
	y.policy("orders", "sends", auth.Send)
	own, stranger := y.login("listens"), y.login("stranger")
	joined := own.join(9, "g", "orders")
	own.sync(5, "g", joined, joined.MemberID)
	for what, code := range map[string]int16{
		"to its own hub":     ask[*kmsg.JoinGroupResponse](stranger, 9, joinRequest("g", "", "others")).ErrorCode,
		"to the group's hub": ask[*kmsg.JoinGroupResponse](stranger, 9, joinRequest("g", "", "orders")).ErrorCode,
		"who may not Listen": ask[*kmsg.JoinGroupResponse](y.login("sends"), 9, joinRequest("g", "", "orders")).ErrorCode,
		"with its id":        stranger.beat(4, "g", joined),
	} {
		testkit.Equal(t, code, codeGroupRights, "code %s", what)
	}
	testkit.Equal(t, len(ask[*kmsg.ListGroupsResponse](stranger, 5, kmsg.NewPtrListGroupsRequest()).Groups), 0, "groups that it hears of")
	testkit.Equal(t, own.beat(4, "g", joined), codeNone, "code of the member")
}
