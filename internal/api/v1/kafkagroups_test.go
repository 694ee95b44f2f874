package v1

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	kafkagroups "github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/testkit"
)

const kafkaGroupsPath = "/api/v1/hubs/orders/kafka-groups"

// withKafka gives a yard, and its Kafka groups.
func withKafka(t testing.TB) (*yard, *kafkagroups.Coordinator) {
	t.Helper()
	y := newYard(t)
	testkit.Run(t, y.kafka.Run)
	return y, y.kafka
}

func joinKafka(t testing.TB, c *kafkagroups.Coordinator, group, hub string) classic.Joined {
	t.Helper()
	anything := func(string) bool { return true }
	wants := kmsg.NewConsumerMemberMetadata()
	wants.Topics = []string{hub}
	joined := testkit.Value(c.Join(t.Context(), group, classic.Join{
		NewID: "member-1", Client: "app", Host: "10.0.0.1", Session: time.Minute, Rebalance: time.Minute, Type: "consumer",
		Protocols: []classic.Protocol{{Name: "range", Metadata: wants.AppendTo(nil)}},
	}, anything))(t)
	assigned := kmsg.NewConsumerMemberAssignment()
	assigned.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: hub, Partitions: []int32{1}}}
	testkit.Must(t, testkit.Err(c.Sync(t.Context(), group, classic.Sync{
		Member: joined.Member, Generation: joined.Generation, Assignments: map[string][]byte{joined.Member: assigned.AppendTo(nil)},
	}, anything)))
	return joined
}

// P6, K2: Kafka groups are listed and shown, with members, offsets and lag, to who may listen to all their hubs.
func TestKafkaGroupsAreShown(t *testing.T) {
	y, c := withKafka(t)
	y.hub("orders", 2)
	y.hub("bills", 1)
	y.send("orders", "1", "a", "b", "c")
	o := kafkagroups.Operator{Coordinator: c}
	testkit.Must(t, o.SetOffsets(t.Context(), "readers", "orders", map[int32]int64{1: 1}))
	testkit.Must(t, o.SetOffsets(t.Context(), "both/halves", "orders", map[int32]int64{0: 0}))
	testkit.Must(t, o.SetOffsets(t.Context(), "both/halves", "bills", map[int32]int64{0: 0}))
	joinKafka(t, c, "readers", "orders")

	own := y.policy("orders", "own", auth.Listen|auth.Send|auth.Manage)
	mine := y.as(basic("own", own.Primary))
	type list = struct{ Groups []admin.KafkaGroup }
	for path, want := range map[string]int{kafkaGroupsPath: 2, "/api/v1/kafka-groups": 2, "/api/v1/hubs/bills/kafka-groups": 1} {
		testkit.Equal(t, len(read[list](t, y.want(200, "GET", path, nil)).Groups), want, path)
	}
	for _, path := range []string{kafkaGroupsPath, "/api/v1/kafka-groups"} {
		got := read[list](t, mine.want(200, "GET", path, nil)).Groups
		testkit.MustEqual(t, len(got), 1, "what one with a right to one hub is told of at %s", path)
		testkit.Equal(t, got[0].Name, "readers")
		testkit.Equal(t, got[0].Members, 1)
	}
	mine.refused(403, "insufficient-rights", "GET", kafkaGroupsPath+"/both%2Fhalves", nil)
	table := read[admin.KafkaGroupTable](t, mine.want(200, "GET", kafkaGroupsPath+"/readers", nil))
	testkit.That(t, table.Kind == "classic" && table.State == "Stable" && table.Protocol == "range" && table.Node == "here", "it is %+v", table.KafkaGroup)
	testkit.MustEqual(t, len(table.Instances), 1, "members")
	testkit.Equal(t, table.Instances[0], admin.KafkaMember{ID: "member-1", Client: "app", Host: "10.0.0.1", Partitions: 1})
	testkit.MustEqual(t, len(table.Partitions), 2, "partitions")
	p := table.Partitions[1]
	testkit.That(t, p.Owner == "member-1" && *p.Committed == 1 && *p.LagEvents == 2 && p.Last == 2 && p.LagSeconds != nil, "it is %+v", p)
	testkit.That(t, table.Partitions[0].Committed == nil && table.Partitions[0].LagEvents == nil, "it is %+v", table.Partitions[0])
	testkit.Equal(t, table.LagEvents, int64(2))
	y.refused(404, "not-found", "GET", kafkaGroupsPath+"/nobody", nil)
	y.refused(404, "not-found", "GET", "/api/v1/hubs/bills/kafka-groups/readers", nil)
	y.refused(404, "not-found", "GET", "/api/v1/hubs/nobody/kafka-groups", nil)
}

// P7, K2: what Kafka groups have committed is moved, forgotten and deleted, and not while somebody is in them.
func TestKafkaGroupsAreChanged(t *testing.T) {
	y, c := withKafka(t)
	y.hub("orders", 2)
	y.hub("bills", 1)
	y.send("orders", "0", "a", "b", "c")
	o := kafkagroups.Operator{Coordinator: c}
	testkit.Must(t, o.SetOffsets(t.Context(), "readers", "orders", map[int32]int64{0: 1}))
	move := func(body string) admin.Moved {
		t.Helper()
		return read[admin.Moved](t, y.want(200, "PUT", kafkaGroupsPath+"/readers/offsets/0", body))
	}
	committed := func() int64 {
		t.Helper()
		return testkit.Value(o.Committed(t.Context(), "readers", "orders"))(t)[0].Offset
	}
	m := move(`{"to":{"latest":true},"dryRun":true}`)
	testkit.That(t, *m.From.Sequence == 0 && *m.To.Sequence == 2, "it would be %+v", m)
	testkit.Equal(t, committed(), int64(1), "after a dry run")
	for body, want := range map[string]int64{`{"to":{"latest":true}}`: 3, `{"to":{"earliest":true}}`: 0, `{"to":{"sequence":1}}`: 2, `{"to":{"time":"2100-01-01T00:00:00Z"}}`: 3} {
		move(body)
		testkit.Equal(t, committed(), want, body)
	}
	y.refused(416, "position-out-of-range", "PUT", kafkaGroupsPath+"/readers/offsets/0", `{"to":{"sequence":3}}`)
	y.refused(404, "not-found", "PUT", kafkaGroupsPath+"/readers/offsets/7", `{"to":{"earliest":true}}`)
	y.refused(404, "not-found", "PUT", kafkaGroupsPath+"/nobody/offsets/0", `{"to":{"earliest":true}}`)

	j := joinKafka(t, c, "readers", "orders")
	y.refused(409, "group-has-members", "PUT", kafkaGroupsPath+"/readers/offsets/0", `{"to":{"earliest":true},"force":true}`)
	y.refused(409, "group-has-members", "DELETE", kafkaGroupsPath+"/readers/offsets", nil)
	y.refused(409, "group-has-members", "DELETE", kafkaGroupsPath+"/readers", nil)
	testkit.Must(t, testkit.Err(c.Leave(t.Context(), "readers", []classic.Leaver{{Member: j.Member}}, func(string) bool { return true })))

	testkit.Must(t, o.SetOffsets(t.Context(), "readers", "bills", map[int32]int64{0: 0}))
	own := y.policy("orders", "own", auth.Listen|auth.Send|auth.Manage)
	y.as(basic("own", own.Primary)).refused(403, "insufficient-rights", "DELETE", kafkaGroupsPath+"/readers", nil)
	y.want(204, "DELETE", "/api/v1/hubs/bills/kafka-groups/readers/offsets", nil)
	y.as(basic("own", own.Primary)).want(204, "DELETE", kafkaGroupsPath+"/readers", nil)
	y.refused(404, "not-found", "DELETE", kafkaGroupsPath+"/readers", nil)
}

// K2, P7: positions are copied both ways between a Kafka group and a group of the hub; all, or none.
func TestPositionsAreCopiedToKafkaAndBack(t *testing.T) {
	y, c := withKafka(t)
	_, _, _ = y.owned(1) // of partition 0, with a worker that lives
	const path = kafkaGroupsPath + "/readers/copy"
	o := kafkagroups.Operator{Coordinator: c}
	moved := read[admin.MovedList](t, y.want(200, "POST", path, `{"group":"billing","to":"kafka","dryRun":true}`))
	testkit.That(t, moved.DryRun && len(moved.Moved) == 1 && *moved.Moved[0].To.Sequence == 1, "it would be %+v", moved)
	testkit.ErrorIs(t, testkit.Err(o.Look(t.Context(), "readers")), kafkagroups.ErrNotFound, "after a dry run")
	y.want(200, "POST", path, `{"group":"billing","to":"kafka"}`)
	got := testkit.Value(o.Committed(t.Context(), "readers", "orders"))(t)
	testkit.That(t, len(got) == 1 && got[0].Offset == 2, "the Kafka group goes on at %+v", got)

	testkit.Must(t, o.SetOffsets(t.Context(), "readers", "orders", map[int32]int64{0: 4, 1: 0}))
	y.refused(409, "owned", "POST", path, `{"group":"billing","to":"processor"}`)
	list := read[admin.MovedList](t, y.want(200, "POST", path, `{"group":"billing","to":"processor","force":true}`))
	testkit.That(t, len(list.Moved) == 2 && *list.Moved[0].From.Sequence == 1 && *list.Moved[0].To.Sequence == 3 && *list.Moved[1].To.Sequence == -1, "moved %+v", list)

	testkit.Must(t, o.SetOffsets(t.Context(), "readers", "orders", map[int32]int64{0: 99}))
	y.refused(416, "position-out-of-range", "POST", path, `{"group":"billing","to":"processor","force":true}`)
	y.refused(404, "not-found", "POST", path, `{"group":"nobody","to":"processor"}`)
	y.refused(404, "not-found", "POST", path, `{"group":"nobody","to":"kafka"}`)
	y.refused(404, "not-found", "POST", kafkaGroupsPath+"/nobody/copy", `{"group":"billing","to":"processor"}`)
	for _, body := range []string{`{"group":"billing"}`, `{"to":"kafka"}`, `{"group":"$Default","to":"kafka"}`} {
		y.refused(400, "bad-request", "POST", path, body)
	}
	joinKafka(t, c, "readers", "orders")
	y.refused(409, "group-has-members", "POST", path, `{"group":"billing","to":"kafka","force":true}`)
}
