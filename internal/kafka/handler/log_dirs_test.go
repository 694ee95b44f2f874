package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: tools hear how much partitions take, those that one may see, each once.
func TestSizesOfPartitions(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 2)
	y.hub("others", 1)
	y.policy("orders", "sends", auth.Send)
	c := y.login("sends")
	testkit.MustEqual(t, c.produce(hub, 1, values("abcdefghij")).ErrorCode, codeNone)
	for version := int16(1); version <= 5; version++ {
		all := ask[*kmsg.DescribeLogDirsResponse](c, version, kmsg.NewPtrDescribeLogDirsRequest()).Dirs
		testkit.MustEqual(t, len(all), 1, "directories")
		testkit.Equal(t, all[0].ErrorCode, codeNone, "code")
		testkit.MustEqual(t, len(all[0].Topics), 1, "topics")
		testkit.Equal(t, all[0].Topics[0].Topic, "orders")
		testkit.MustEqual(t, len(all[0].Topics[0].Partitions), 2, "partitions")
		testkit.That(t, all[0].Topics[0].Partitions[1].Size > 10, "it has %d bytes", all[0].Topics[0].Partitions[1].Size)

		r := kmsg.NewPtrDescribeLogDirsRequest()
		r.Topics = []kmsg.DescribeLogDirsRequestTopic{
			{Topic: "orders", Partitions: []int32{1, 1, 7}}, {Topic: "ORDERS", Partitions: []int32{1}},
			{Topic: "others", Partitions: []int32{0}}, {Topic: "nobody", Partitions: []int32{0}},
		}
		some := ask[*kmsg.DescribeLogDirsResponse](c, version, r).Dirs[0].Topics
		testkit.MustEqual(t, len(some), 1, "topics that were named")
		testkit.MustEqual(t, len(some[0].Partitions), 1, "their partitions")
		testkit.Equal(t, some[0].Partitions[0].Partition, int32(1))
	}
}

// K1: tools that ask for what a yard does not have hear so, in words that they know.
func TestWhatToolsAskInVain(t *testing.T) {
	c := newYard(t).client()
	for version := int16(1); version <= 3; version++ {
		testkit.Equal(t, ask[*kmsg.DescribeACLsResponse](c, version, kmsg.NewPtrDescribeACLsRequest()).ErrorCode, codeNoLists, "code of DescribeAcls")
		create := kmsg.NewPtrCreateACLsRequest()
		create.Creations = make([]kmsg.CreateACLsRequestCreation, 2)
		created := ask[*kmsg.CreateACLsResponse](c, version, create).Results
		testkit.MustEqual(t, len(created), 2, "results of CreateAcls")
		testkit.Equal(t, created[1].ErrorCode, codeNoLists, "code of CreateAcls")
		testkit.Equal(t, *created[1].ErrorMessage, noLists)
		remove := kmsg.NewPtrDeleteACLsRequest()
		remove.Filters = make([]kmsg.DeleteACLsRequestFilter, 2)
		deleted := ask[*kmsg.DeleteACLsResponse](c, version, remove).Results
		testkit.MustEqual(t, len(deleted), 2, "results of DeleteAcls")
		testkit.Equal(t, deleted[1].ErrorCode, codeNoLists, "code of DeleteAcls")
	}
	moves := ask[*kmsg.ListPartitionReassignmentsResponse](c, 0, kmsg.NewPtrListPartitionReassignmentsRequest())
	testkit.Equal(t, moves.ErrorCode, codeNone, "code of ListPartitionReassignments")
	testkit.Equal(t, len(moves.Topics), 0, "partitions that move")
}
