package handler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: commits that store nothing make no groups, of which there is a number for all.
func TestCommitsOfNothingMakeNoGroup(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 1)
	y.policy("orders", "sends", auth.Send)
	y.policy("orders", "listens", auth.Listen)
	long := commitRequest(hub, "", 0, 1)
	long.Topics[0].Partitions[0].Metadata = new(strings.Repeat("x", 2000))
	nothing := commitRequest(hub, "", 0, 1)
	nothing.Topics = nil
	for _, policy := range []string{"sends", "listens"} {
		c := y.login(policy)
		for what, r := range map[string]*kmsg.OffsetCommitRequest{
			"of nothing": nothing, "with a long note": long, "of a partition that is not there": commitRequest(hub, "", 1, 1),
		} {
			r.Group = policy + " " + what
			answer := ask[*kmsg.OffsetCommitResponse](c, 9, r)
			testkit.Equal(t, len(answer.Topics), len(r.Topics), "topics of a commit %s", what)
			for _, t1 := range answer.Topics {
				testkit.That(t, t1.Partitions[0].ErrorCode != codeNone, "a commit %s is accepted", what)
			}
		}
	}
	testkit.Equal(t, y.metric("eventyard_kafka_groups"), 0, "groups in use")
	testkit.Equal(t, y.login("listens").commit(9, hub, "g", 0, 1), codeNone, "code of a commit")
	testkit.Equal(t, y.metric("eventyard_kafka_groups"), 1, "groups in use after it")
}

// K5: who may listen to nothing hears nothing of a group, be it by what its members' epochs are or whether it exists.
func TestStrangersLearnNothingFromOffsets(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 1)
	y.policy("orders", "sends", auth.Send)
	own, stranger := y.login(auth.RootPolicy), y.login("sends")
	testkit.MustEqual(t, own.consume(joining("a", "orders")).ErrorCode, codeNone)
	for group, wants := range map[string]int16{"g": codeStaleMemberEpoch, "nobody": codeNone} {
		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group, MemberID: kmsg.StringPtr("a"), MemberEpoch: 2, Topics: []kmsg.OffsetFetchRequestGroupTopic{{TopicID: hub.ID, Partitions: []int32{0}}}}}
		testkit.Equal(t, ask[*kmsg.OffsetFetchResponse](own, 10, fetch).Groups[0].ErrorCode, wants, "code of who may listen")
		testkit.Equal(t, ask[*kmsg.OffsetFetchResponse](stranger, 10, fetch).Groups[0].ErrorCode, codeGroupRights, "code of a stranger to %s", group)
		forget := kmsg.NewPtrOffsetDeleteRequest()
		forget.Group = group
		testkit.Equal(t, ask[*kmsg.OffsetDeleteResponse](stranger, 0, forget).ErrorCode, codeGroupRights, "code of forgetting %s", group)
	}
}

// K2: offsets of partitions that a hub does not have are not there to be forgotten, and a group does not become one of
// more shards by it.
func TestOffsetsOfMissingPartitionsAreNotForgotten(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	other := y.hub("others", 1)
	c := y.client()
	testkit.MustEqual(t, c.commit(9, hub, "g", 1, 5), codeNone)
	r := kmsg.NewPtrOffsetDeleteRequest()
	r.Group = "g"
	for _, name := range []string{hub.Name, other.Name} {
		asked := kmsg.OffsetDeleteRequestTopic{Topic: name}
		for _, n := range []int32{-1, 2, 1_000_000} {
			asked.Partitions = append(asked.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: n})
		}
		r.Topics = append(r.Topics, asked)
	}
	for _, topic := range ask[*kmsg.OffsetDeleteResponse](c, 0, r).Topics {
		for _, part := range topic.Partitions {
			testkit.Equal(t, part.ErrorCode, codeUnknownTopic, "code of %s", fmt.Sprint(topic.Topic, "/", part.Partition))
		}
	}
	testkit.Equal(t, len(testkit.Value(y.groups.Logs(t.Context(), "g"))(t)), 1, "hubs in which it has offsets")
	testkit.Equal(t, c.committed(8, hub, "g", 1).Offset, int64(5), "the offset that there is")
}

// K5: offsets are forgotten by who may listen to all hubs that the group is about.
func TestForgettingOffsetsNeedsRightsToTheGroup(t *testing.T) {
	y := newClosedYard(t)
	orders, bills := y.hub("orders", 1), y.hub("bills", 1)
	y.policy("bills", "some", auth.Listen)
	y.policy("", "all", auth.Listen)
	root := y.login(auth.RootPolicy)
	for _, hub := range []broker.Hub{orders, bills} {
		testkit.MustEqual(t, root.commit(9, hub, "g", 0, 5), codeNone)
	}
	testkit.MustEqual(t, root.commit(9, bills, "own", 0, 5), codeNone)
	forget := func(policy, group string) int16 {
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group, r.Topics = group, []kmsg.OffsetDeleteRequestTopic{{Topic: "bills", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
		return ask[*kmsg.OffsetDeleteResponse](y.login(policy), 0, r).ErrorCode
	}
	testkit.Equal(t, forget("some", "g"), codeGroupRights, "code of who may listen to one of its hubs")
	testkit.Equal(t, root.committed(8, bills, "g", 0).Offset, int64(5), "the offset")
	testkit.Equal(t, forget("some", "own"), codeNone, "code of who may listen to its one hub")
	testkit.Equal(t, forget("all", "g"), codeNone, "code of who may listen to all")
	testkit.Equal(t, root.committed(8, bills, "g", 0).Offset, int64(nowhere), "the offset that was forgotten")
}
