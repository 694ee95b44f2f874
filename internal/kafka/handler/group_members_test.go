package handler

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// K6: what a group keeps of a request is its own, so that of a body of megabytes nothing stays but that.
func TestGroupsKeepNoRequests(t *testing.T) {
	var conn *kafka.Conn
	y := newYard(t, func(_ *yard, cfg *Config) {
		cfg.Advertise = func(c *kafka.Conn) (string, int32) {
			conn = c
			return "yard.test", 9092
		}
	})
	y.hub("orders", 1)
	ask[*kmsg.MetadataResponse](y.client(), 13, metadataOf())
	p := groupMember{peer: &peer{handler: y.handler, conn: conn, log: y.log.Logger}}

	join := joinRequest("g", "", "orders")
	said := join.Protocols[0].Metadata
	want := bytes.Clone(said)
	join.SetVersion(3)
	joined := p.joinGroup(t.Context(), join).(*kmsg.JoinGroupResponse)
	testkit.MustEqual(t, joined.ErrorCode, codeNone, "code of joining")
	sync, assigned := kmsg.NewPtrSyncGroupRequest(), []byte("everything")
	sync.Group, sync.Generation, sync.MemberID = "g", joined.Generation, joined.MemberID
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: assigned}}
	testkit.MustEqual(t, p.syncGroup(t.Context(), sync).(*kmsg.SyncGroupResponse).ErrorCode, codeNone, "code of synchronizing")

	clear(said)
	clear(assigned)
	m := testkit.Value(y.groups.Describe(t.Context(), "g"))(t).Members[0]
	testkit.Equal(t, string(m.Metadata), string(want), "what it says")
	testkit.Equal(t, string(m.Assignment), "everything", "what it is assigned")
	testkit.Equal(t, len(join.Protocols)+len(sync.GroupAssignment), 0, "what requests that wait would still hold")
}

// K6: assignments that no group can store are refused before they wait for the leader.
func TestAssignmentsAreBounded(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	c := y.client()
	joined := c.join(9, "g", "orders")
	r := kmsg.NewPtrSyncGroupRequest()
	r.Group, r.Generation, r.MemberID = "g", joined.Generation, joined.MemberID
	for _, id := range []string{"somebody", "somebody else"} {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: make([]byte, member.MaxBytes/2+1)})
	}
	testkit.Equal(t, ask[*kmsg.SyncGroupResponse](c, 5, r).ErrorCode, codeGroupFull, "code")
	testkit.Equal(t, string(c.sync(5, "g", joined, joined.MemberID).MemberAssignment), "everything", "what the leader assigns then")
}

// K6: who waits for the others of a group is answered when memory is scarce, so as to come again, and is not cut off.
func TestMembersThatWaitMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, within(1<<20))
		y.hub("orders", 1)
		a, b := y.client(), y.client()
		first := a.join(3, "g", "orders")
		a.sync(3, "g", first, first.MemberID)
		hurried := func(version int16, r kmsg.Request) kmsg.Response {
			t.Helper()
			start := time.Now()
			b.send(version, r)
			synctest.Wait()
			other := y.memory.Share("other", nil)
			testkit.Must(t, other.Take(t.Context(), 1<<20))
			defer other.Give()
			answer := b.receive(r)
			testkit.Equal(t, time.Since(start), admission.DefaultPatience, "it waited")
			return answer
		}

		join, wants := joinRequest("g", "", "orders"), kmsg.NewConsumerMemberMetadata()
		wants.Topics, wants.UserData = []string{"orders"}, make([]byte, 100<<10)
		join.Protocols[0].Metadata = wants.AppendTo(nil)
		testkit.Equal(t, hurried(3, join).(*kmsg.JoinGroupResponse).ErrorCode, codeNoCoordinator, "code of who joins")

		second := make(chan *kmsg.JoinGroupResponse, 1)
		go func() { second <- b.join(3, "g", "orders") }()
		synctest.Wait()
		again := ask[*kmsg.JoinGroupResponse](a, 3, joinRequest("g", first.MemberID, "orders"))
		joined := <-second
		testkit.MustEqual(t, again.ErrorCode, codeNone, "code of the leader")
		r := kmsg.NewPtrSyncGroupRequest()
		r.Group, r.Generation, r.MemberID = "g", joined.Generation, joined.MemberID
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: "nobody", MemberAssignment: make([]byte, 100<<10)}}
		testkit.Equal(t, hurried(3, r).(*kmsg.SyncGroupResponse).ErrorCode, codeNoCoordinator, "code of who synchronizes")
		testkit.Equal(t, string(a.sync(3, "g", again, joined.MemberID).MemberAssignment), "", "what the leader has")
		testkit.Equal(t, string(b.sync(3, "g", joined, "").MemberAssignment), "everything", "what the other has when it comes again")
	})
}
