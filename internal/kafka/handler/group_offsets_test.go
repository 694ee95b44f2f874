package handler

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
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
